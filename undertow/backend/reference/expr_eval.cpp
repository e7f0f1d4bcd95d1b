// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/reference/expr_eval.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "undertow/base/check.h"
#include "undertow/base/philox.h"

namespace undertow::backend::reference {
namespace {

using ir::Opcode;

template <typename T>
inline constexpr bool kHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// The cast of ir/expr.h: floats to integers truncate and saturate, NaN gives 0; to bool: non-zero.
template <typename To, typename From>
To convert(From v) {
  if constexpr (kHalf<From>) return convert<To>(static_cast<float>(v));
  else if constexpr (kHalf<To>) return To(static_cast<float>(v));
  else if constexpr (std::is_same_v<To, bool>) return v != From{};
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using L = std::numeric_limits<To>;
    if (v != v) return 0;
    if (v <= static_cast<From>(L::min())) return L::min();
    if (v >= static_cast<From>(L::max())) return L::max();
    return static_cast<To>(v);
  } else return static_cast<To>(v);
}

[[noreturn]] void refuse(Opcode op, DType dtype) {
  throw Error(fmt::format("scalar operation {} has no meaning for {}", static_cast<int>(op), name_of(dtype)));
}

template <typename T, typename R, typename F>
void map1(const void* x, void* out, int n, F f) {
  for (int i = 0; i < n; ++i) static_cast<R*>(out)[i] = static_cast<R>(f(static_cast<const T*>(x)[i]));
}
template <typename T, typename R, typename F>
void map2(const void* x, const void* y, void* out, int n, F f) {
  for (int i = 0; i < n; ++i)
    static_cast<R*>(out)[i] = static_cast<R>(f(static_cast<const T*>(x)[i], static_cast<const T*>(y)[i]));
}

template <typename T>
bool unary_float(Opcode op, const void* x, void* out, int n) {
  const auto map = [&](auto f) {
    map1<T, T>(x, out, n, f);
    return true;
  };
  switch (op) {
    case Opcode::kNeg: return map([](T v) { return -v; });
    case Opcode::kAbs: return map([](T v) { return std::fabs(v); });
    case Opcode::kSqrt: return map([](T v) { return std::sqrt(v); });
    case Opcode::kFloor: return map([](T v) { return std::floor(v); });
    case Opcode::kCeil: return map([](T v) { return std::ceil(v); });
    case Opcode::kRound: return map([](T v) { return std::nearbyint(v); });
    case Opcode::kTrunc: return map([](T v) { return std::trunc(v); });
    case Opcode::kExp: return map([](T v) { return std::exp(v); });
    case Opcode::kExpm1: return map([](T v) { return std::expm1(v); });
    case Opcode::kLog: return map([](T v) { return std::log(v); });
    case Opcode::kLog1p: return map([](T v) { return std::log1p(v); });
    case Opcode::kSin: return map([](T v) { return std::sin(v); });
    case Opcode::kCos: return map([](T v) { return std::cos(v); });
    case Opcode::kTanh: return map([](T v) { return std::tanh(v); });
    case Opcode::kErf: return map([](T v) { return std::erf(v); });
    default: return false;
  }
}

template <typename T>
bool unary_integer(Opcode op, const void* x, void* out, int n) {
  const auto map = [&](auto f) {
    map1<T, T>(x, out, n, f);
    return true;
  };
  switch (op) {
    case Opcode::kNeg: return map([](T v) { return std::uint64_t{0} - static_cast<std::uint64_t>(v); });
    case Opcode::kAbs:
      return map([](T v) { return v < T{} ? std::uint64_t{0} - static_cast<std::uint64_t>(v) : std::uint64_t(v); });
    case Opcode::kFloor:
    case Opcode::kCeil:
    case Opcode::kRound:
    case Opcode::kTrunc: return map([](T v) { return v; });
    case Opcode::kNot:
      if constexpr (std::is_same_v<T, bool>) return map([](T v) { return !v; });
      else return map([](T v) { return ~v; });
    default: return false;
  }
}

template <typename T>
bool binary_float(Opcode op, const void* x, const void* y, void* out, int n) {
  const auto map = [&](auto f) {
    map2<T, T>(x, y, out, n, f);
    return true;
  };
  switch (op) {
    case Opcode::kAdd: return map([](T a, T b) { return a + b; });
    case Opcode::kSub: return map([](T a, T b) { return a - b; });
    case Opcode::kMul: return map([](T a, T b) { return a * b; });
    case Opcode::kDiv: return map([](T a, T b) { return a / b; });
    case Opcode::kRem: return map([](T a, T b) { return std::fmod(a, b); });
    case Opcode::kPow: return map([](T a, T b) { return std::pow(a, b); });
    case Opcode::kAtan2: return map([](T a, T b) { return std::atan2(a, b); });
    case Opcode::kMin: return map([](T a, T b) { return a < b || a != a ? a : b; });
    case Opcode::kMax: return map([](T a, T b) { return a > b || a != a ? a : b; });
    default: return false;
  }
}

/// Wraps; a negative exponent gives what truncation leaves of the true power (0 for base 0 as well).
template <typename T>
T integer_pow(T base, T exponent) {
  std::uint64_t b = static_cast<std::uint64_t>(base), result = 1;
  if constexpr (std::is_signed_v<T>)
    if (exponent < 0) return base == 1 ? T{1} : base == -1 ? static_cast<T>(exponent % 2 == 0 ? 1 : -1) : T{0};
  for (auto e = static_cast<std::uint64_t>(exponent); e; e >>= 1, b *= b)
    if (e & 1) result *= b;
  return static_cast<T>(result);
}

/// Quotient or remainder; 0 for a zero divisor, and the lowest value over -1 wraps.
template <bool kQuotient, typename T>
T divide(T a, T b) {
  if (b == T{}) return T{};
  if constexpr (std::is_signed_v<T>)
    if (b == T(-1)) return kQuotient ? static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(a)) : T{0};
  return static_cast<T>(kQuotient ? a / b : a % b);
}

/// Shifts by the type's width or more (or by a negative count) push every bit out.
template <bool kLeft, typename T>
T shift(T a, T b) {
  constexpr auto kBits = static_cast<std::uint64_t>(sizeof(T) * 8);
  const auto count = static_cast<std::uint64_t>(b);
  if (count >= kBits) return kLeft || a >= T{} ? T{} : static_cast<T>(-1);
  return static_cast<T>(kLeft ? static_cast<std::uint64_t>(a) << count : static_cast<std::uint64_t>(a >> count));
}

template <typename T>
bool binary_integer(Opcode op, const void* x, const void* y, void* out, int n) {
  using U = std::uint64_t;
  const auto map = [&](auto f) {
    map2<T, T>(x, y, out, n, f);
    return true;
  };
  switch (op) {
    case Opcode::kAdd: return map([](T a, T b) { return static_cast<U>(a) + static_cast<U>(b); });
    case Opcode::kSub: return map([](T a, T b) { return static_cast<U>(a) - static_cast<U>(b); });
    case Opcode::kMul: return map([](T a, T b) { return static_cast<U>(a) * static_cast<U>(b); });
    case Opcode::kDiv: return map([](T a, T b) { return divide<true>(a, b); });
    case Opcode::kRem: return map([](T a, T b) { return divide<false>(a, b); });
    case Opcode::kPow: return map([](T a, T b) { return integer_pow(a, b); });
    case Opcode::kMin: return map([](T a, T b) { return a < b ? a : b; });
    case Opcode::kMax: return map([](T a, T b) { return a > b ? a : b; });
    case Opcode::kAnd: return map([](T a, T b) { return a & b; });
    case Opcode::kOr: return map([](T a, T b) { return a | b; });
    case Opcode::kXor: return map([](T a, T b) { return a ^ b; });
    case Opcode::kShl: return map([](T a, T b) { return shift<true>(a, b); });
    case Opcode::kShr: return map([](T a, T b) { return shift<false>(a, b); });
    default: return false;
  }
}

template <typename T>
bool compare(Opcode op, const void* x, const void* y, void* out, int n) {
  const auto map = [&](auto f) {
    map2<T, bool>(x, y, out, n, f);
    return true;
  };
  switch (op) {
    case Opcode::kEq: return map([](T a, T b) { return a == b; });
    case Opcode::kNe: return map([](T a, T b) { return a != b; });
    case Opcode::kLt: return map([](T a, T b) { return a < b; });
    case Opcode::kLe: return map([](T a, T b) { return a <= b; });
    case Opcode::kGt: return map([](T a, T b) { return a > b; });
    case Opcode::kGe: return map([](T a, T b) { return a >= b; });
    default: return false;
  }
}

/// One- and two-operand arithmetic on operands of type `dtype`. False: no such operation.
bool arithmetic(Opcode op, DType dtype, const void* x, const void* y, void* out, int n) {
  return dispatch(dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (kHalf<T>) return false;
    else if constexpr (std::is_floating_point_v<T>)
      return y ? binary_float<T>(op, x, y, out, n) || compare<T>(op, x, y, out, n) : unary_float<T>(op, x, out, n);
    else
      return y ? binary_integer<T>(op, x, y, out, n) || compare<T>(op, x, y, out, n) : unary_integer<T>(op, x, out, n);
  });
}

void cast(DType from, DType to, const void* x, void* out, int n) {
  dispatch(from, [&](auto f) {
    dispatch(to, [&](auto t) {
      using From = decltype(f);
      using To = decltype(t);
      map1<From, To>(x, out, n, [](From v) { return convert<To>(v); });
    });
  });
}

}  // namespace

ExprEval::ExprEval(ir::Expr expr) : expr_(std::move(expr)) {
  registers_.resize(expr_.insts.size() * kBlock);
  std::vector<const void*> none(expr_.inputs.size(), nullptr);
  for (std::size_t i = 0; i < expr_.insts.size(); ++i) step(expr_.insts[i], reg(static_cast<int>(i)), none, 0, 0);
}

void ExprEval::run(std::span<const void* const> inputs, std::int64_t index, int n) {
  for (std::size_t i = 0; i < expr_.insts.size(); ++i)
    step(expr_.insts[i], reg(static_cast<std::int32_t>(i)), inputs, index, n);
}

void ExprEval::store(int i, DType dtype, void* out, int n) const { cast(result_dtype(i), dtype, result(i), out, n); }

void ExprEval::step(const ir::ExprInst& inst, void* out, std::span<const void* const> inputs, std::int64_t index,
                    int n) {
  const auto operand = [&](std::int32_t id) -> const void* { return id < 0 ? nullptr : reg(id); };
  const auto type_of = [&](std::int32_t id) { return expr_.insts[static_cast<std::size_t>(id)].dtype; };
  const void *a = operand(inst.a), *b = operand(inst.b), *c = operand(inst.c);
  switch (inst.op) {
    case Opcode::kInput: {
      const auto i = static_cast<std::size_t>(inst.imm);
      return cast(expr_.inputs[i], inst.dtype, inputs[i], out, n);
    }
    case Opcode::kConst:
      return dispatch(inst.dtype, [&](auto tag) {
        using T = decltype(tag);
        const T v = is_floating(inst.dtype) ? convert<T>(inst.fimm) : convert<T>(inst.imm);
        for (int i = 0; i < n; ++i) static_cast<T*>(out)[i] = v;
      });
    case Opcode::kIndex:
      for (int i = 0; i < n; ++i) static_cast<std::int64_t*>(out)[i] = index + i;
      return;
    case Opcode::kCast: return cast(type_of(inst.a), inst.dtype, a, out, n);
    case Opcode::kSelect:
      return dispatch(inst.dtype, [&](auto tag) {
        using T = decltype(tag);
        for (int i = 0; i < n; ++i)
          static_cast<T*>(out)[i] = static_cast<const T*>(static_cast<const bool*>(a)[i] ? b : c)[i];
      });
    case Opcode::kRandom:
      for (int i = 0; i < n; ++i)
        static_cast<float*>(out)[i] = random_uniform(
            static_cast<const std::uint64_t*>(a)[i], static_cast<std::uint64_t>(static_cast<const std::int64_t*>(b)[i]),
            static_cast<std::uint64_t>(static_cast<const std::int64_t*>(c)[i]), static_cast<std::uint32_t>(inst.imm));
      return;
    default:
      if (!arithmetic(inst.op, type_of(inst.a), a, b, out, n)) refuse(inst.op, type_of(inst.a));
  }
}

}  // namespace undertow::backend::reference
