// SPDX-License-Identifier: Apache-2.0
// Elementwise operators: everything about each one stands in its block below.
#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/precision.h"
#include "undertow/ops/register.h"

namespace undertow::ops {

using namespace detail;
using ir::Attrs;
using ir::ExprBuilder;
using ir::GradContext;
using ir::Opcode;
using ir::Scalar;
using In = std::span<const Scalar>;
using Grads = std::vector<Tensor>;

namespace {

auto op(Opcode o) {
  return [o](Scalar x) { return fn(o, x); };
}
auto op2(Opcode o) {
  return [o](Scalar x, Scalar y) { return x.builder->binary(o, x, y); };
}

Scalar zero(Scalar like) { return like.builder->constant(0, like.dtype); }

/// x where it is positive or NaN, else 0.
Scalar relu_expr(Scalar x) { return select(x <= 0, zero(x), x); }

Scalar sign_expr(Scalar x) {
  const Scalar one = x.builder->constant(1, x.dtype);
  if (is_floating(x.dtype) || is_signed(x.dtype)) {
    const Scalar minus = x.builder->constant(-1, x.dtype);
    return select(x > 0, one, select(x < 0, minus, x));
  }
  return select(not_equal(x, zero(x)), one, x);
}

Scalar sigmoid_expr(Scalar x) {
  // exp of a non-positive number only: no overflow for either sign.
  const Scalar e = fn(Opcode::kExp, -fn(Opcode::kAbs, x));
  return select(x >= 0, 1.0 / (1.0 + e), e / (1.0 + e));
}

Scalar is_finite_expr(Scalar x) {
  if (!is_floating(x.dtype)) return equal(x, x);
  return equal(x - x, zero(x));  // inf - inf and NaN - NaN are NaN
}

Scalar floor_mod_expr(Scalar x, Scalar y) {
  const Scalar r = x.builder->binary(Opcode::kRem, x, y);
  if (!is_signed(x.dtype)) return r;
  const Scalar differs = x.builder->binary(Opcode::kXor, r < 0, y < 0);
  const Scalar nonzero = not_equal(r, zero(r));
  return select(x.builder->binary(Opcode::kAnd, differs, nonzero), r + y, r);
}

Scalar floor_div_expr(Scalar x, Scalar y) {
  if (is_floating(x.dtype)) return fn(Opcode::kFloor, x / y);
  const Scalar q = x / y;
  if (!is_signed(x.dtype)) return q;
  const Scalar r = x.builder->binary(Opcode::kRem, x, y);
  const Scalar differs = x.builder->binary(Opcode::kXor, r < 0, y < 0);
  const Scalar nonzero = not_equal(r, zero(r));
  return select(x.builder->binary(Opcode::kAnd, differs, nonzero), q - 1.0, q);
}

Tensor mask(const Tensor& condition, const Tensor& g) { return select(condition, g, 0.0); }

/// Gradient of max/min: the larger side gets it; ties are shared equally.
GradFn extremum_grad(bool largest) {
  return [largest](const GradContext& c) {
    const Tensor &x = c.inputs[0], &y = c.inputs[1], &g = c.grads[0];
    const Tensor half = mul(g, 0.5), tie = equal(x, y);
    const Tensor wins = largest ? greater(x, y) : less(x, y);
    const Tensor loses = largest ? less(x, y) : greater(x, y);
    return Grads{select(tie, half, mask(wins, g)), select(tie, half, mask(loses, g))};
  };
}

}  // namespace

void register_elementwise(ir::OpSet& set) {
  set.add(unary("neg", "-x", [](Scalar x) { return -x; }, [](const GradContext& c) { return neg(c.grads[0]); }));
  set.add(
      unary("abs", "|x|", op(Opcode::kAbs), [](const GradContext& c) { return mul(c.grads[0], sign(c.inputs[0])); }));
  set.add(in_float32(
      unary("exp", "e^x", op(Opcode::kExp), [](const GradContext& c) { return mul(c.grads[0], c.outputs[0]); })));
  set.add(in_float32(unary("expm1", "e^x - 1", op(Opcode::kExpm1),
                           [](const GradContext& c) { return mul(c.grads[0], add(c.outputs[0], 1.0)); })));
  set.add(in_float32(unary("log", "natural logarithm", op(Opcode::kLog),
                           [](const GradContext& c) { return div(c.grads[0], c.inputs[0]); })));
  set.add(in_float32(unary("log1p", "log(1 + x)", op(Opcode::kLog1p),
                           [](const GradContext& c) { return div(c.grads[0], add(c.inputs[0], 1.0)); })));
  set.add(unary("sqrt", "square root", op(Opcode::kSqrt),
                [](const GradContext& c) { return div(mul(c.grads[0], 0.5), c.outputs[0]); }));
  set.add(in_float32(unary(
      "rsqrt", "1 / sqrt(x)", [](Scalar x) { return 1.0 / fn(Opcode::kSqrt, x); },
      [](const GradContext& c) {
        const Tensor& y = c.outputs[0];
        return mul(mul(c.grads[0], -0.5), mul(y, mul(y, y)));
      })));
  set.add(unary(
      "square", "x * x", [](Scalar x) { return x * x; },
      [](const GradContext& c) { return mul(c.grads[0], mul(c.inputs[0], 2.0)); }));
  set.add(in_float32(unary(
      "reciprocal", "1 / x", [](Scalar x) { return 1.0 / x; },
      [](const GradContext& c) { return neg(mul(c.grads[0], mul(c.outputs[0], c.outputs[0]))); })));
  set.add(
      unary("sin", "sine", op(Opcode::kSin), [](const GradContext& c) { return mul(c.grads[0], cos(c.inputs[0])); }));
  set.add(unary("cos", "cosine", op(Opcode::kCos),
                [](const GradContext& c) { return neg(mul(c.grads[0], sin(c.inputs[0]))); }));
  set.add(unary("tanh", "hyperbolic tangent", op(Opcode::kTanh),
                [](const GradContext& c) { return mul(c.grads[0], sub(1.0, mul(c.outputs[0], c.outputs[0]))); }));
  set.add(unary("erf", "error function", op(Opcode::kErf), [](const GradContext& c) {
    constexpr double kTwoOverSqrtPi = 1.1283791670955126;
    return mul(c.grads[0], mul(exp(neg(square(c.inputs[0]))), kTwoOverSqrtPi));
  }));
  set.add(unary("sigmoid", "1 / (1 + e^-x)", sigmoid_expr,
                [](const GradContext& c) { return mul(c.grads[0], mul(c.outputs[0], sub(1.0, c.outputs[0]))); }));
  set.add(unary("relu", "max(x, 0); NaN stays", relu_expr,
                [](const GradContext& c) { return mask(greater(c.outputs[0], 0.0), c.grads[0]); }));
  set.add(unary("floor", "largest integer <= x", op(Opcode::kFloor)));
  set.add(unary("ceil", "smallest integer >= x", op(Opcode::kCeil)));
  set.add(unary("round", "nearest integer, half to even", op(Opcode::kRound)));
  set.add(unary("trunc", "toward zero", op(Opcode::kTrunc)));
  set.add(unary("sign", "-1, 0 or 1; NaN stays", sign_expr));
  set.add(unary("copy", "x", [](Scalar x) { return x; }, [](const GradContext& c) { return c.grads[0]; }));
  set.add(unary("stop_gradient", "x, through which no gradient flows", [](Scalar x) { return x; }));
  set.add(unary_to_bool("logical_not", "not x", [](Scalar x) { return equal(x, zero(x)); }));
  set.add(unary_to_bool("isnan", "x is NaN", [](Scalar x) { return not_equal(x, x); }));
  set.add(unary_to_bool("isinf", "x is infinite", [](Scalar x) {
    const Scalar nan = not_equal(x, x);
    return x.builder->binary(Opcode::kAnd, x.builder->unary(Opcode::kNot, is_finite_expr(x)),
                             x.builder->unary(Opcode::kNot, nan));
  }));
  set.add(unary_to_bool("isfinite", "x is neither infinite nor NaN", is_finite_expr));

  {
    auto cast_def = elementwise(
        "cast", {"x"}, "x in another dtype; float to integer truncates and saturates",
        [](ExprBuilder& b, In in, const Attrs& a) { return b.cast(in[0], a.dtype("dtype")); },
        [](const GradContext& c) { return Grads{cast(c.grads[0], c.inputs[0].dtype())}; },
        [](std::span<const ir::TensorType> in, const Attrs& a) {
          return std::vector{ir::TensorType{a.dtype("dtype"), in[0].shape}};
        });
    cast_def.defaults = {{"dtype", DType::kFloat32}};
    set.add(std::move(cast_def));
  }

  set.add(binary(
      "add", "x + y", [](Scalar x, Scalar y) { return x + y; },
      [](const GradContext& c) { return Grads{c.grads[0], c.grads[0]}; }));
  set.add(binary(
      "sub", "x - y", [](Scalar x, Scalar y) { return x - y; },
      [](const GradContext& c) { return Grads{c.grads[0], c.needs[1] ? neg(c.grads[0]) : Tensor()}; }));
  set.add(binary(
      "mul", "x * y", [](Scalar x, Scalar y) { return x * y; },
      [](const GradContext& c) {
        return Grads{c.needs[0] ? mul(c.grads[0], c.inputs[1]) : Tensor(),
                     c.needs[1] ? mul(c.grads[0], c.inputs[0]) : Tensor()};
      }));
  set.add(binary(
      "div", "x / y", [](Scalar x, Scalar y) { return x / y; },
      [](const GradContext& c) {
        const Tensor gx = div(c.grads[0], c.inputs[1]);
        return Grads{gx, c.needs[1] ? neg(mul(gx, c.outputs[0])) : Tensor()};
      }));
  set.add(binary("floor_div", "floor(x / y)", floor_div_expr));
  set.add(binary("floor_mod", "x - floor(x / y) * y", floor_mod_expr));
  set.add(in_float32(binary("pow", "x ^ y", op2(Opcode::kPow), [](const GradContext& c) {
    const Tensor &x = c.inputs[0], &y = c.inputs[1], &g = c.grads[0];
    Grads out(2);
    if (c.needs[0]) out[0] = mul(g, mul(y, pow(x, sub(y, 1.0))));
    if (c.needs[1]) out[1] = mul(g, select(equal(x, 0.0), 0.0, mul(c.outputs[0], log(select(equal(x, 0.0), 1.0, x)))));
    return out;
  })));
  set.add(binary("maximum", "the larger; NaN wins", op2(Opcode::kMax), extremum_grad(true)));
  set.add(binary("minimum", "the smaller; NaN wins", op2(Opcode::kMin), extremum_grad(false)));
  set.add(binary("atan2", "angle of (y, x) with x first: atan2(x, y)", op2(Opcode::kAtan2), [](const GradContext& c) {
    const Tensor &x = c.inputs[0], &y = c.inputs[1];
    const Tensor scaled = div(c.grads[0], add(square(x), square(y)));
    return Grads{mul(scaled, y), neg(mul(scaled, x))};
  }));

  set.add(compare("equal", "x == y", [](Scalar x, Scalar y) { return equal(x, y); }));
  set.add(compare("not_equal", "x != y", [](Scalar x, Scalar y) { return not_equal(x, y); }));
  set.add(compare("less", "x < y", [](Scalar x, Scalar y) { return x < y; }));
  set.add(compare("less_equal", "x <= y", [](Scalar x, Scalar y) { return x <= y; }));
  set.add(compare("greater", "x > y", [](Scalar x, Scalar y) { return x > y; }));
  set.add(compare("greater_equal", "x >= y", [](Scalar x, Scalar y) { return x >= y; }));
  set.add(binary("logical_and", "x and y (bool)", op2(Opcode::kAnd)));
  set.add(binary("logical_or", "x or y (bool)", op2(Opcode::kOr)));
  set.add(binary("logical_xor", "x xor y (bool)", op2(Opcode::kXor)));

  set.add(elementwise(
      "select", {"condition", "x", "y"}, "condition ? x : y",
      [](ExprBuilder& b, In in, const Attrs&) { return b.select(in[0], in[1], in[2]); },
      [](const GradContext& c) {
        return Grads{Tensor(), c.needs[1] ? select(c.inputs[0], c.grads[0], 0.0) : Tensor(),
                     c.needs[2] ? select(c.inputs[0], 0.0, c.grads[0]) : Tensor()};
      },
      [](std::span<const ir::TensorType> in, const Attrs&) {
        UNDERTOW_CHECK(in[0].dtype == DType::kBool, TypeError, "condition must be Bool, got {}", name_of(in[0].dtype));
        UNDERTOW_CHECK(in[1].dtype == in[2].dtype, TypeError, "x and y have different dtypes: {} and {}",
                       name_of(in[1].dtype), name_of(in[2].dtype));
        return std::vector{ir::TensorType{in[1].dtype, broadcast(in[0].shape, broadcast(in[1].shape, in[2].shape))}};
      }));
}

// ---- The functions.

DType Operand::dtype_beside(DType other) const {
  if (is_tensor()) return undertow::promote(tensor_.dtype(), other);
  if (is_bool_) return other;
  if (is_float_) return is_floating(other) ? other : DType::kFloat32;
  return other == DType::kBool ? DType::kInt64 : other;
}

Tensor Operand::as(DType dtype) const {
  if (is_tensor()) return cast(tensor_, dtype);
  return is_float_ ? constant(number_, dtype) : constant_int(is_bool_ ? number_ != 0 : integer_, dtype);
}

namespace {

DType common_type(const Operand& x, const Operand& y) {
  if (x.is_tensor() && y.is_tensor()) return promote(x.tensor(), y.tensor());
  if (x.is_tensor()) return y.dtype_beside(x.tensor().dtype());
  if (y.is_tensor()) return x.dtype_beside(y.tensor().dtype());
  return y.dtype_beside(x.dtype_beside(DType::kBool));
}

Tensor call2(const char* name, const Operand& x, const Operand& y) {
  const DType t = common_type(x, y);
  return call(name, {x.as(t), y.as(t)});
}

/// For functions that are only defined on floats: integers and bools become float32.
Tensor as_float(const Tensor& x) { return is_floating(x.dtype()) ? x : cast(x, DType::kFloat32); }

Tensor as_bool(const Operand& x) {
  if (!x.is_tensor()) return x.as(DType::kBool);
  return x.tensor().dtype() == DType::kBool ? x.tensor() : not_equal(x.tensor(), 0);
}

}  // namespace

#define UNDERTOW_UNARY(name) \
  Tensor name(const Tensor& x) { return call(#name, {x}); }
#define UNDERTOW_UNARY_FLOAT(name) \
  Tensor name(const Tensor& x) { return call(#name, {as_float(x)}); }
#define UNDERTOW_BINARY(name) \
  Tensor name(const Operand& x, const Operand& y) { return call2(#name, x, y); }
#define UNDERTOW_LOGICAL(name) \
  Tensor name(const Operand& x, const Operand& y) { return call(#name, {as_bool(x), as_bool(y)}); }

UNDERTOW_UNARY(neg)
UNDERTOW_UNARY(abs)
UNDERTOW_UNARY(square)
UNDERTOW_UNARY(relu)
UNDERTOW_UNARY(sign)
UNDERTOW_UNARY(logical_not)
UNDERTOW_UNARY(isnan)
UNDERTOW_UNARY(isinf)
UNDERTOW_UNARY(isfinite)
UNDERTOW_UNARY(copy)
UNDERTOW_UNARY(stop_gradient)
UNDERTOW_UNARY_FLOAT(exp)
UNDERTOW_UNARY_FLOAT(expm1)
UNDERTOW_UNARY_FLOAT(log)
UNDERTOW_UNARY_FLOAT(log1p)
UNDERTOW_UNARY_FLOAT(sqrt)
UNDERTOW_UNARY_FLOAT(rsqrt)
UNDERTOW_UNARY_FLOAT(reciprocal)
UNDERTOW_UNARY_FLOAT(sin)
UNDERTOW_UNARY_FLOAT(cos)
UNDERTOW_UNARY_FLOAT(tanh)
UNDERTOW_UNARY_FLOAT(erf)
UNDERTOW_UNARY_FLOAT(sigmoid)
UNDERTOW_BINARY(add)
UNDERTOW_BINARY(sub)
UNDERTOW_BINARY(mul)
UNDERTOW_BINARY(floor_div)
UNDERTOW_BINARY(floor_mod)
UNDERTOW_BINARY(pow)
UNDERTOW_BINARY(maximum)
UNDERTOW_BINARY(minimum)
UNDERTOW_BINARY(equal)
UNDERTOW_BINARY(not_equal)
UNDERTOW_BINARY(less)
UNDERTOW_BINARY(less_equal)
UNDERTOW_BINARY(greater)
UNDERTOW_BINARY(greater_equal)
UNDERTOW_LOGICAL(logical_and)
UNDERTOW_LOGICAL(logical_or)
UNDERTOW_LOGICAL(logical_xor)

#undef UNDERTOW_UNARY
#undef UNDERTOW_UNARY_FLOAT
#undef UNDERTOW_BINARY
#undef UNDERTOW_LOGICAL

// Rounding leaves integers as they are.
Tensor floor(const Tensor& x) { return is_floating(x.dtype()) ? call("floor", {x}) : x; }
Tensor ceil(const Tensor& x) { return is_floating(x.dtype()) ? call("ceil", {x}) : x; }
Tensor round(const Tensor& x) { return is_floating(x.dtype()) ? call("round", {x}) : x; }
Tensor trunc(const Tensor& x) { return is_floating(x.dtype()) ? call("trunc", {x}) : x; }

Tensor cast(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : call("cast", {x}, {{"dtype", dtype}}); }

Tensor div(const Operand& x, const Operand& y) {
  DType t = common_type(x, y);
  if (!is_floating(t)) t = DType::kFloat32;
  return call("div", {x.as(t), y.as(t)});
}

Tensor atan2(const Operand& x, const Operand& y) {
  DType t = common_type(x, y);
  if (!is_floating(t)) t = DType::kFloat32;
  return call("atan2", {x.as(t), y.as(t)});
}

Tensor select(const Tensor& condition, const Operand& x, const Operand& y) {
  const DType t = common_type(x, y);
  return call("select", {condition, x.as(t), y.as(t)});
}

Tensor clip(const Tensor& x, std::optional<double> low, std::optional<double> high) {
  Tensor y = x;
  if (low) y = maximum(y, *low);
  if (high) y = minimum(y, *high);
  return y;
}

}  // namespace undertow::ops
