// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/register.h"

#include <mutex>

#include "undertow/base/check.h"
#include "undertow/ops/apply_precision.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/precision.h"

namespace undertow::ops {

void register_all() {
  static std::once_flag once;
  std::call_once(once, [] {
    ir::OpSet& set = ir::op_set();
    register_elementwise(set);
    register_math(set);
    register_create(set);
    register_reduce(set);
    register_shape(set);
    register_index(set);
    register_cumulative(set);
    register_sort(set);
    register_scatter(set);
    register_matmul(set);
    register_conv(set);
    register_pool(set);
    register_control(set);
    register_print(set);
  });
}

namespace {
Dispatcher* installed = nullptr;
}

void set_dispatcher(Dispatcher* d) { installed = d; }

Dispatcher& dispatcher() {
  UNDERTOW_ASSERT(installed);
  return *installed;
}

std::vector<Tensor> apply(const ir::OpDef& op, std::vector<Tensor> inputs, ir::Attrs attrs,
                          std::vector<ir::RegionPtr> regions) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    UNDERTOW_CHECK(inputs[i].defined(), TypeError, "{}: input {} is not a tensor (got None)", op.name,
                   i < op.inputs.size() ? op.inputs[i] : std::to_string(i));
  for (const auto& [key, value] : op.defaults)
    if (!attrs.find(key)) attrs.set(key, value);
  if (precision().mode == Precision::kOff || !regions.empty())
    return dispatcher().apply(op, std::move(inputs), std::move(attrs), std::move(regions));
  const bool back = detail::adapt_inputs(op, inputs);
  std::vector<Tensor> results = dispatcher().apply(op, std::move(inputs), std::move(attrs), {});
  if (back)
    for (Tensor& t : results)
      if (is_half(t.dtype())) t = cast(t, DType::kFloat32);
  return results;
}

std::vector<Tensor> apply(std::string_view op, std::vector<Tensor> inputs, ir::Attrs attrs) {
  register_all();
  return apply(ir::op_set().get(op), std::move(inputs), std::move(attrs));
}

Tensor call(std::string_view op, std::vector<Tensor> inputs, ir::Attrs attrs) {
  return apply(op, std::move(inputs), std::move(attrs)).at(0);
}

namespace detail {

InferFn infer_broadcast() {
  return [](std::span<const ir::TensorType> in, const ir::Attrs&) {
    ir::TensorType out = in[0];
    for (std::size_t i = 1; i < in.size(); ++i) {
      UNDERTOW_CHECK(in[i].dtype == out.dtype, TypeError, "inputs have different dtypes: {} and {}", name_of(out.dtype),
                     name_of(in[i].dtype));
      out.shape = broadcast(out.shape, in[i].shape);
    }
    return std::vector{out};
  };
}

InferFn infer_broadcast_as(DType fixed) {
  return [fixed, base = infer_broadcast()](std::span<const ir::TensorType> in, const ir::Attrs& attrs) {
    auto out = base(in, attrs);
    out[0].dtype = fixed;
    return out;
  };
}

ir::OpDef elementwise(std::string name, std::vector<std::string> inputs, std::string doc, ExprFn expr, GradFn grad,
                      InferFn infer) {
  ir::OpDef def;
  def.name = std::move(name);
  def.num_inputs = static_cast<int>(inputs.size());
  def.inputs = std::move(inputs);
  def.doc = std::move(doc);
  def.infer = std::move(infer);
  def.grad = std::move(grad);
  def.expr = std::move(expr);
  def.elementwise = true;
  return def;
}

ir::OpDef unary(std::string name, std::string doc, std::function<ir::Scalar(ir::Scalar)> f,
                std::function<Tensor(const ir::GradContext&)> grad) {
  return elementwise(
      std::move(name), {"x"}, std::move(doc),
      [f](ir::ExprBuilder&, std::span<const ir::Scalar> in, const ir::Attrs&) { return f(in[0]); },
      grad ? GradFn([grad](const ir::GradContext& c) { return std::vector<Tensor>{grad(c)}; }) : nullptr);
}

ir::OpDef unary_to_bool(std::string name, std::string doc, std::function<ir::Scalar(ir::Scalar)> f) {
  return elementwise(
      std::move(name), {"x"}, std::move(doc),
      [f](ir::ExprBuilder&, std::span<const ir::Scalar> in, const ir::Attrs&) { return f(in[0]); }, nullptr,
      infer_broadcast_as(DType::kBool));
}

ir::OpDef binary(std::string name, std::string doc, std::function<ir::Scalar(ir::Scalar, ir::Scalar)> f, GradFn grad) {
  return elementwise(
      std::move(name), {"x", "y"}, std::move(doc),
      [f](ir::ExprBuilder&, std::span<const ir::Scalar> in, const ir::Attrs&) { return f(in[0], in[1]); },
      std::move(grad));
}

ir::OpDef compare(std::string name, std::string doc, std::function<ir::Scalar(ir::Scalar, ir::Scalar)> f) {
  return elementwise(
      std::move(name), {"x", "y"}, std::move(doc),
      [f](ir::ExprBuilder&, std::span<const ir::Scalar> in, const ir::Attrs&) { return f(in[0], in[1]); }, nullptr,
      infer_broadcast_as(DType::kBool));
}

}  // namespace detail

}  // namespace undertow::ops
