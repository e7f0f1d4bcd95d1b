// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors from nothing: constants, ranges, random draws.
#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/register.h"

namespace undertow::ops {

using namespace detail;
using ir::Attrs;
using ir::ExprBuilder;
using ir::Opcode;
using ir::Scalar;
using In = std::span<const Scalar>;
using Types = std::span<const ir::TensorType>;

void register_create(ir::OpSet& set) {
  auto constant_def = elementwise(
      "constant", {}, "a number as a rank-0 tensor",
      [](ExprBuilder& b, In, const Attrs& a) {
        const ir::AttrValue& v = a.at("value");
        const DType t = a.dtype("dtype");
        if (const auto* i = std::get_if<std::int64_t>(&v)) return b.constant_int(*i, t);
        Scalar s = b.constant(std::get<double>(v), t);
        return is_half(t) ? b.cast(s, t) : s;
      },
      nullptr, [](Types, const Attrs& a) { return std::vector{ir::TensorType{a.dtype("dtype"), Shape{}}}; });
  constant_def.defaults = {{"value", 0.0}, {"dtype", DType::kFloat32}};
  set.add(std::move(constant_def));

  auto iota_def = elementwise(
      "iota", {}, "the index along an axis",
      [](ExprBuilder& b, In, const Attrs& a) {
        const Shape shape(a.ints("shape"));
        const auto axis = static_cast<int>(a.integer("axis"));
        std::int64_t inner = 1;
        for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
        Scalar i = b.index();
        if (inner != 1) i = i / b.constant_int(inner, DType::kInt64);
        if (axis != 0) i = b.binary(Opcode::kRem, i, b.constant_int(shape[axis], DType::kInt64));
        return b.cast(i, a.dtype("dtype"));
      },
      nullptr,
      [](Types, const Attrs& a) { return std::vector{ir::TensorType{a.dtype("dtype"), Shape(a.ints("shape"))}}; });
  iota_def.defaults = {{"axis", std::int64_t{0}}, {"dtype", DType::kInt64}};
  set.add(std::move(iota_def));

  auto random_def = elementwise(
      "random_uniform", {"seed", "step"}, "uniform in [0, 1): Philox4x32-10 keyed by seed, step, stream and position",
      [](ExprBuilder& b, In in, const Attrs& a) { return b.random(in[0], in[1], b.index(), a.integer("stream")); },
      nullptr,
      [](Types, const Attrs& a) { return std::vector{ir::TensorType{DType::kFloat32, Shape(a.ints("shape"))}}; });
  random_def.random = true;
  random_def.defaults = {{"stream", std::int64_t{0}}};
  set.add(std::move(random_def));
}

Tensor constant(double value, DType dtype) { return call("constant", {}, {{"value", value}, {"dtype", dtype}}); }

Tensor constant_int(std::int64_t value, DType dtype) {
  if (is_floating(dtype)) return constant(static_cast<double>(value), dtype);
  return call("constant", {}, {{"value", value}, {"dtype", dtype}});
}

Tensor full(const Shape& shape, double value, DType dtype) { return broadcast_to(constant(value, dtype), shape); }
Tensor zeros_like(const Tensor& x) { return full(x.shape(), 0, x.dtype()); }
Tensor ones_like(const Tensor& x) { return full(x.shape(), 1, x.dtype()); }

Tensor iota(const Shape& shape, int axis, DType dtype) {
  return call("iota", {}, {{"shape", shape.to_vector()}, {"axis", std::int64_t{axis}}, {"dtype", dtype}});
}

Tensor arange(std::int64_t n, DType dtype) { return iota(Shape{n}, 0, dtype); }

Tensor random_uniform(const Shape& shape) {
  const auto key = dispatcher().random_key();
  return call("random_uniform", {key.seed, key.step}, {{"shape", shape.to_vector()}, {"stream", key.stream}});
}

Tensor dropout(const Tensor& x, double p) {
  UNDERTOW_CHECK(p >= 0 && p < 1, ValueError, "dropout: p must be in [0, 1), got {}", p);
  if (p == 0) return x;
  return select(greater_equal(random_uniform(x.shape()), p), mul(x, 1 / (1 - p)), 0.0);
}

}  // namespace undertow::ops
