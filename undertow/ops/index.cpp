// SPDX-License-Identifier: Apache-2.0
// Indexing: gather and its gradient, range checks, and NumPy's square brackets.
#include <algorithm>

#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/precision.h"
#include "undertow/ops/reference/reference.h"
#include "undertow/ops/register.h"

namespace undertow::ops {

using ir::Attrs;
using ir::GradContext;
using Grads = std::vector<Tensor>;
using Ints = std::vector<std::int64_t>;
using Types = std::span<const ir::TensorType>;

void register_index(ir::OpSet& set) {
  ir::OpDef gather_def;
  gather_def.name = "gather";
  gather_def.num_inputs = 2;
  gather_def.inputs = {"x", "indices"};
  gather_def.doc = "x's slices at integer positions along an axis; negative positions count from the end";
  gather_def.defaults = {{"axis", std::int64_t{0}}};
  gather_def.effect = true;
  gather_def.infer = [](Types in, const Attrs& a) {
    UNDERTOW_CHECK(is_integral(in[1].dtype), TypeError, "indices must be integers, got {}", name_of(in[1].dtype));
    const auto axis = static_cast<int>(a.integer("axis"));
    ir::TensorType out{in[0].dtype, {}};
    for (int d = 0; d < axis; ++d) out.shape.push_back(in[0].shape[d]);
    for (const auto n : in[1].shape) out.shape.push_back(n);
    for (int d = axis + 1; d < in[0].shape.rank(); ++d) out.shape.push_back(in[0].shape[d]);
    return std::vector{out};
  };
  gather_def.grad = [](const GradContext& c) {
    return Grads{call("scatter_add", {c.grads[0], c.inputs[1]},
                      {{"axis", c.attrs.integer("axis")}, {"input_shape", c.inputs[0].shape().to_vector()}}),
                 Tensor()};
  };
  gather_def.reference = reference::gather;
  set.add(std::move(gather_def));

  ir::OpDef scatter;
  scatter.name = "scatter_add";
  scatter.num_inputs = 2;
  scatter.inputs = {"dy", "indices"};
  scatter.doc = "gradient of gather: slices added at integer positions of zeros";
  scatter.infer = [](Types in, const Attrs& a) {
    return std::vector{ir::TensorType{in[0].dtype, Shape(a.ints("input_shape"))}};
  };
  scatter.grad = [](const GradContext& c) {
    return Grads{call("gather", {c.grads[0], c.inputs[1]}, {{"axis", c.attrs.integer("axis")}}), Tensor()};
  };
  scatter.reference = reference::scatter_add;
  set.add(std::move(scatter));

  ir::OpDef check;
  check.name = "check_index";
  check.inputs = {"index"};
  check.doc = "an error on the device unless low <= index < high everywhere";
  check.effect = true;
  check.infer = [](Types in, const Attrs&) {
    UNDERTOW_CHECK(is_integral(in[0].dtype), TypeError, "must be integers, got {}", name_of(in[0].dtype));
    return std::vector<ir::TensorType>{};
  };
  check.reference = reference::check_index;
  set.add(std::move(check));
}

Tensor gather(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  // Narrow indices become int32, which the kernels take; uint64 stays, since its largest numbers are no int64.
  const bool narrow = is_integral(indices.dtype()) && size_of(indices.dtype()) < 4;
  const Tensor rows = call("gather", {x, narrow ? cast(indices, DType::kInt32) : indices},
                           {{"axis", std::int64_t{normalize_axis(axis, x.ndim(), "gather")}}});
  return cast(rows, read_type(x));  // a table is not cast as a whole
}

Tensor one_hot(const Tensor& indices, std::int64_t depth, double on, double off, DType dtype) {
  Shape s = indices.shape();
  s.push_back(depth);
  const Tensor hit = equal(cast(expand_dims(indices, -1), DType::kInt64), iota(s, s.rank() - 1, DType::kInt64));
  return select(hit, constant(on, dtype), constant(off, dtype));
}

}  // namespace undertow::ops
