// SPDX-License-Identifier: Apache-2.0
#include "undertow/ir/expr.h"

#include "undertow/base/check.h"

namespace undertow::ir {

void Expr::hash(Hasher& h) const {
  h.add_range(inputs).add_range(results).add(insts.size());
  for (const auto& i : insts) h.add(i.op).add(i.dtype).add(i.a).add(i.b).add(i.c).add(i.imm).add(i.fimm);
}

Scalar ExprBuilder::push(ExprInst inst) {
  expr_.insts.push_back(inst);
  return {this, static_cast<std::int32_t>(expr_.insts.size()) - 1, inst.dtype};
}

Scalar ExprBuilder::input(int i, DType dtype) {
  if (static_cast<std::size_t>(i) >= expr_.inputs.size()) expr_.inputs.resize(static_cast<std::size_t>(i) + 1, dtype);
  expr_.inputs[static_cast<std::size_t>(i)] = dtype;
  return push({.op = Opcode::kInput, .dtype = compute_type(dtype), .imm = i});
}
Scalar ExprBuilder::constant(double value, DType dtype) {
  if (!is_floating(dtype)) return constant_int(static_cast<std::int64_t>(value), dtype);
  if (compute_type(dtype) == DType::kFloat32) value = static_cast<double>(static_cast<float>(value));
  return push({.op = Opcode::kConst, .dtype = compute_type(dtype), .fimm = value});
}
Scalar ExprBuilder::constant_int(std::int64_t value, DType dtype) {
  if (is_floating(dtype)) return constant(static_cast<double>(value), dtype);
  return push({.op = Opcode::kConst, .dtype = dtype, .imm = value});
}
Scalar ExprBuilder::index() { return push({.op = Opcode::kIndex, .dtype = DType::kInt64}); }

Scalar ExprBuilder::cast(Scalar x, DType dtype) {
  if (x.dtype == dtype) return x;
  if (is_half(dtype)) {
    // Rounded to the half type, held in float32: two casts, so that the rounding is visible to every reader.
    const Scalar h = push({.op = Opcode::kCast, .dtype = dtype, .a = cast(x, DType::kFloat32).id});
    return push({.op = Opcode::kCast, .dtype = DType::kFloat32, .a = h.id});
  }
  return push({.op = Opcode::kCast, .dtype = dtype, .a = x.id});
}

Scalar ExprBuilder::unary(Opcode op, Scalar x) { return push({.op = op, .dtype = x.dtype, .a = x.id}); }

Scalar ExprBuilder::binary(Opcode op, Scalar x, Scalar y) {
  UNDERTOW_ASSERT(x.dtype == y.dtype);
  const bool compares = op >= Opcode::kEq && op <= Opcode::kGe;
  return push({.op = op, .dtype = compares ? DType::kBool : x.dtype, .a = x.id, .b = y.id});
}
Scalar ExprBuilder::select(Scalar c, Scalar x, Scalar y) {
  UNDERTOW_ASSERT(c.dtype == DType::kBool && x.dtype == y.dtype);
  return push({.op = Opcode::kSelect, .dtype = x.dtype, .a = c.id, .b = x.id, .c = y.id});
}
Scalar ExprBuilder::random(Scalar seed, Scalar step, Scalar index, std::int64_t stream) {
  return push(
      {.op = Opcode::kRandom, .dtype = DType::kFloat32, .a = seed.id, .b = step.id, .c = index.id, .imm = stream});
}

std::vector<Scalar> ExprBuilder::inline_expr(const Expr& other, std::span<const Scalar> inputs) {
  std::vector<std::int32_t> map(other.insts.size());
  for (std::size_t i = 0; i < other.insts.size(); ++i) {
    ExprInst inst = other.insts[i];
    if (inst.op == Opcode::kInput) {
      map[i] = inputs[static_cast<std::size_t>(inst.imm)].id;
      continue;
    }
    for (auto* operand : {&inst.a, &inst.b, &inst.c})
      if (*operand >= 0) *operand = map[static_cast<std::size_t>(*operand)];
    map[i] = push(inst).id;
  }
  std::vector<Scalar> results;
  for (const auto r : other.results)
    results.push_back({this, map[static_cast<std::size_t>(r)], other.insts[static_cast<std::size_t>(r)].dtype});
  return results;
}

namespace {
Scalar number(double v, Scalar like) { return like.builder->constant(v, like.dtype); }
Scalar two(Opcode op, Scalar x, Scalar y) { return x.builder->binary(op, x, y); }
}  // namespace

Scalar operator+(Scalar x, Scalar y) { return two(Opcode::kAdd, x, y); }
Scalar operator-(Scalar x, Scalar y) { return two(Opcode::kSub, x, y); }
Scalar operator*(Scalar x, Scalar y) { return two(Opcode::kMul, x, y); }
Scalar operator/(Scalar x, Scalar y) { return two(Opcode::kDiv, x, y); }
Scalar operator-(Scalar x) { return x.builder->unary(Opcode::kNeg, x); }
Scalar operator+(Scalar x, double y) { return x + number(y, x); }
Scalar operator-(Scalar x, double y) { return x - number(y, x); }
Scalar operator*(Scalar x, double y) { return x * number(y, x); }
Scalar operator/(Scalar x, double y) { return x / number(y, x); }
Scalar operator+(double x, Scalar y) { return number(x, y) + y; }
Scalar operator-(double x, Scalar y) { return number(x, y) - y; }
Scalar operator*(double x, Scalar y) { return number(x, y) * y; }
Scalar operator/(double x, Scalar y) { return number(x, y) / y; }
Scalar operator<(Scalar x, Scalar y) { return two(Opcode::kLt, x, y); }
Scalar operator<=(Scalar x, Scalar y) { return two(Opcode::kLe, x, y); }
Scalar operator>(Scalar x, Scalar y) { return two(Opcode::kGt, x, y); }
Scalar operator>=(Scalar x, Scalar y) { return two(Opcode::kGe, x, y); }
Scalar operator<(Scalar x, double y) { return x < number(y, x); }
Scalar operator>(Scalar x, double y) { return x > number(y, x); }
Scalar operator<=(Scalar x, double y) { return x <= number(y, x); }
Scalar operator>=(Scalar x, double y) { return x >= number(y, x); }
Scalar equal(Scalar x, Scalar y) { return two(Opcode::kEq, x, y); }
Scalar not_equal(Scalar x, Scalar y) { return two(Opcode::kNe, x, y); }
Scalar select(Scalar c, Scalar x, Scalar y) { return c.builder->select(c, x, y); }
Scalar fn(Opcode op, Scalar x) { return x.builder->unary(op, x); }

}  // namespace undertow::ir
