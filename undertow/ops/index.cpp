// SPDX-License-Identifier: Apache-2.0
// Indexing: gather and its gradient, range checks, and NumPy's square brackets.
#include <algorithm>

#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/ops.h"
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
  return call("gather", {x, indices}, {{"axis", std::int64_t{normalize_axis(axis, x.ndim(), "gather")}}});
}

Tensor one_hot(const Tensor& indices, std::int64_t depth, double on, double off, DType dtype) {
  Shape s = indices.shape();
  s.push_back(depth);
  const Tensor hit = equal(cast(expand_dims(indices, -1), DType::kInt64), iota(s, s.rank() - 1, DType::kInt64));
  return select(hit, constant(on, dtype), constant(off, dtype));
}

namespace {

struct Axis {  // one axis of the result, before and after slicing
  std::int64_t begin, step, extent;
};

Axis slice_axis(const Index& item, std::int64_t n) {
  const std::int64_t step = item.step.value_or(1);
  UNDERTOW_CHECK(step != 0, ValueError, "a slice's step cannot be 0");
  const auto bound = [&](std::optional<std::int64_t> v, std::int64_t missing) {
    if (!v) return missing;
    const std::int64_t i = *v < 0 ? *v + n : *v;
    return step > 0 ? std::clamp<std::int64_t>(i, 0, n) : std::clamp<std::int64_t>(i, -1, n - 1);
  };
  const std::int64_t begin = bound(item.begin, step > 0 ? 0 : n - 1), end = bound(item.end, step > 0 ? n : -1);
  const std::int64_t extent = step > 0 ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step;
  return {begin, step, std::max<std::int64_t>(extent, 0)};
}

}  // namespace

Tensor index(const Tensor& x, const std::vector<Index>& items) {
  int consumed = 0;
  bool ellipsis = false;
  for (const auto& i : items) {
    consumed += i.kind != Index::kNewAxis && i.kind != Index::kEllipsis;
    UNDERTOW_CHECK(!(ellipsis && i.kind == Index::kEllipsis), IndexError, "an index can have only one ellipsis (...)");
    ellipsis |= i.kind == Index::kEllipsis;
  }
  UNDERTOW_CHECK(consumed <= x.ndim(), IndexError, "too many indices: {} for a tensor of shape {}", consumed,
                 x.shape().str());
  std::vector<Index> full = items;
  if (!ellipsis) full.push_back({Index::kEllipsis});

  Ints begin, steps, result;
  Shape sliced;
  int axis = 0, tensor_axis = -1;
  Tensor tensor;
  for (const auto& item : full) {
    const auto take = [&](Axis a) {
      begin.push_back(a.begin);
      steps.push_back(a.step);
      sliced.push_back(a.extent);
      ++axis;
    };
    switch (item.kind) {
      case Index::kEllipsis:
        for (int k = x.ndim() - consumed; k > 0; --k) {
          result.push_back(x.shape(axis));
          take({0, 1, x.shape(axis)});
        }
        break;
      case Index::kNewAxis: result.push_back(1); break;
      case Index::kInteger: {
        const std::int64_t n = x.shape(axis), v = item.value < 0 ? item.value + n : item.value;
        UNDERTOW_CHECK(v >= 0 && v < n, IndexError, "index {} is out of range for axis {} with {} elements", item.value,
                       axis, n);
        take({v, 1, 1});
        break;
      }
      case Index::kSlice: {
        const Axis a = slice_axis(item, x.shape(axis));
        result.push_back(a.extent);
        take(a);
        break;
      }
      case Index::kTensor:
        UNDERTOW_CHECK(tensor_axis < 0, ValueError, "indexing with more than one tensor is not supported");
        tensor = item.tensor;
        tensor_axis = static_cast<int>(result.size());
        result.push_back(x.shape(axis));
        take({0, 1, x.shape(axis)});
        break;
    }
  }
  const Tensor y = reshape(slice(x, begin, steps, sliced), result);
  return tensor_axis < 0 ? y : gather(y, tensor, tensor_axis);
}

}  // namespace undertow::ops
