// SPDX-License-Identifier: Apache-2.0
#include "interpreter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "undertow/base/philox.h"
#include "undertow/codegen/isa.h"
#include "undertow/codegen/jit.h"
#include "undertow/codegen/schedule.h"

namespace undertow::codegen_test {
namespace {

using ir::Opcode;
using std::int64_t;

/// Floats in f (a float32 is held exactly), bool and integers in i, unsigned ones by their bits.
struct Val {
  double f = 0;
  int64_t i = 0;
};

int64_t wrap(DType t, int64_t v) {
  return dispatch(t, [&]<typename T>(T) -> int64_t {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) return static_cast<int64_t>(static_cast<T>(v));
    else return v;
  });
}

double round_to(DType t, double v) {
  switch (t) {
    case DType::kFloat32: return static_cast<float>(v);
    case DType::kFloat16: return static_cast<double>(static_cast<float>(float16(static_cast<float>(v))));
    case DType::kBFloat16: return static_cast<double>(static_cast<float>(bfloat16(static_cast<float>(v))));
    default: return v;
  }
}

int64_t saturate(DType t, double v) {
  if (std::isnan(v)) return 0;
  return dispatch(t, [&]<typename T>(T) -> int64_t {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (v <= static_cast<double>(std::numeric_limits<T>::min()))
        return static_cast<int64_t>(std::numeric_limits<T>::min());
      if (v >= static_cast<double>(std::numeric_limits<T>::max()))
        return static_cast<int64_t>(std::numeric_limits<T>::max());
      return static_cast<int64_t>(static_cast<T>(v));
    } else {
      return 0;
    }
  });
}

Val cast(DType from, DType to, Val v) {
  if (from == to) return v;
  const bool unsigned64 = from == DType::kUInt64;
  const auto number = [&] {
    return unsigned64 ? static_cast<double>(static_cast<std::uint64_t>(v.i)) : static_cast<double>(v.i);
  };
  if (is_floating(to)) {
    if (is_floating(from)) return {round_to(to, v.f), 0};
    if (compute_type(to) == DType::kFloat32) {
      const float f = unsigned64 ? static_cast<float>(static_cast<std::uint64_t>(v.i)) : static_cast<float>(v.i);
      return {round_to(to, f), 0};
    }
    return {number(), 0};
  }
  if (to == DType::kBool) return {0, is_floating(from) ? v.f != 0 : v.i != 0};
  if (is_floating(from)) return {0, saturate(to, v.f)};
  return {0, wrap(to, v.i)};
}

Val load(DType t, const void* p) {
  return dispatch(t, [&]<typename T>(T) -> Val {
    T v;
    std::memcpy(&v, p, sizeof v);
    if constexpr (std::is_floating_point_v<T>) return {static_cast<double>(v), 0};
    else if constexpr (std::is_integral_v<T>) return {0, static_cast<int64_t>(v)};
    else return {static_cast<double>(static_cast<float>(v)), 0};
  });
}

void store(DType t, void* p, Val v) {
  dispatch(t, [&]<typename T>(T) {
    T out;
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) out = T(static_cast<float>(v.f));
    else if constexpr (std::is_floating_point_v<T>) out = static_cast<T>(v.f);
    else out = static_cast<T>(v.i);
    std::memcpy(p, &out, sizeof out);
  });
}

double float_op(Opcode op, double a, double b, bool f32) {
  switch (op) {
    case Opcode::kAdd: return f32 ? static_cast<float>(a) + static_cast<float>(b) : a + b;
    case Opcode::kSub: return f32 ? static_cast<float>(a) - static_cast<float>(b) : a - b;
    case Opcode::kMul: return f32 ? static_cast<float>(a) * static_cast<float>(b) : a * b;
    case Opcode::kDiv: return f32 ? static_cast<float>(a) / static_cast<float>(b) : a / b;
    case Opcode::kRem: return std::fmod(a, b);
    case Opcode::kMin: return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b;
    case Opcode::kMax: return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b;
    case Opcode::kPow: return std::pow(a, b);
    case Opcode::kAtan2: return std::atan2(a, b);
    case Opcode::kNeg: return -a;
    case Opcode::kAbs: return std::fabs(a);
    case Opcode::kSqrt: return f32 ? std::sqrt(static_cast<float>(a)) : std::sqrt(a);
    case Opcode::kFloor: return std::floor(a);
    case Opcode::kCeil: return std::ceil(a);
    case Opcode::kRound: return std::nearbyint(a);
    case Opcode::kTrunc: return std::trunc(a);
    case Opcode::kExp: return std::exp(a);
    case Opcode::kExpm1: return std::expm1(a);
    case Opcode::kLog: return std::log(a);
    case Opcode::kLog1p: return std::log1p(a);
    case Opcode::kSin: return std::sin(a);
    case Opcode::kCos: return std::cos(a);
    case Opcode::kTanh: return std::tanh(a);
    case Opcode::kErf: return std::erf(a);
    default: ADD_FAILURE() << "not a float operation"; return 0;
  }
}

int64_t int_op(Opcode op, DType t, int64_t a, int64_t b) {
  return dispatch(t, [&]<typename T>(T) -> int64_t {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      using U = std::make_unsigned_t<T>;
      const T x = static_cast<T>(a), y = static_cast<T>(b);
      const std::uint64_t ux = static_cast<std::uint64_t>(a), uy = static_cast<std::uint64_t>(b);
      const auto bits = static_cast<std::uint64_t>(sizeof(T) * 8);
      const bool lowest_by_minus_one = std::is_signed_v<T> && y == static_cast<T>(-1);
      const auto out = [](std::uint64_t v) { return static_cast<int64_t>(static_cast<T>(v)); };
      switch (op) {
        case Opcode::kAdd: return out(ux + uy);
        case Opcode::kSub: return out(ux - uy);
        case Opcode::kMul: return out(ux * uy);
        case Opcode::kDiv:
          return y == 0 ? 0 : lowest_by_minus_one ? out(0 - ux) : static_cast<int64_t>(static_cast<T>(x / y));
        case Opcode::kRem: return y == 0 || lowest_by_minus_one ? 0 : static_cast<int64_t>(static_cast<T>(x % y));
        case Opcode::kMin: return static_cast<int64_t>(std::min(x, y));
        case Opcode::kMax: return static_cast<int64_t>(std::max(x, y));
        case Opcode::kNeg: return out(0 - ux);
        case Opcode::kAbs: return x < T{0} ? out(0 - ux) : a;
        case Opcode::kAnd: return out(ux & uy);
        case Opcode::kOr: return out(ux | uy);
        case Opcode::kXor: return out(ux ^ uy);
        case Opcode::kNot: return out(~ux);
        case Opcode::kShl: return static_cast<U>(y) >= bits ? 0 : out(ux << static_cast<U>(y));
        case Opcode::kShr:
          if (static_cast<U>(y) >= bits) return x < T{0} ? -1 : 0;
          return static_cast<int64_t>(static_cast<T>(x >> static_cast<U>(y)));
        case Opcode::kPow: {
          std::uint64_t r = 1;
          if (y < T{0}) return x == T{1} ? 1 : x == static_cast<T>(-1) ? (y & 1 ? -1 : 1) : 0;
          std::uint64_t base = ux;
          for (auto n = static_cast<std::uint64_t>(y); n; n >>= 1, base *= base)
            if (n & 1) r *= base;
          return out(r);
        }
        default: return a;  // rounding of integers
      }
    } else {
      switch (op) {
        case Opcode::kAnd:
        case Opcode::kMin:
        case Opcode::kMul: return a & b;
        case Opcode::kOr:
        case Opcode::kMax:
        case Opcode::kAdd: return a | b;
        case Opcode::kXor: return a ^ b;
        case Opcode::kNot: return !a;
        default: return a;
      }
    }
  });
}

bool compare(Opcode op, DType t, Val a, Val b) {
  const auto c = [op](auto x, auto y) {
    switch (op) {
      case Opcode::kEq: return x == y;
      case Opcode::kNe: return x != y;
      case Opcode::kLt: return x < y;
      case Opcode::kLe: return x <= y;
      case Opcode::kGt: return x > y;
      default: return x >= y;
    }
  };
  if (is_floating(t)) return c(a.f, b.f);
  if (t == DType::kUInt64) return c(static_cast<std::uint64_t>(a.i), static_cast<std::uint64_t>(b.i));
  return c(a.i, b.i);
}

std::vector<Val> evaluate(const ir::Expr& e, const std::vector<Val>& inputs, int64_t index) {
  std::vector<Val> v(e.insts.size());
  for (std::size_t n = 0; n < e.insts.size(); ++n) {
    const auto& inst = e.insts[n];
    const auto at = [&](int id) { return id < 0 ? Val{} : v[static_cast<std::size_t>(id)]; };
    const Val a = at(inst.a), b = at(inst.b), c = at(inst.c);
    const DType from = inst.a < 0 ? inst.dtype : e.insts[static_cast<std::size_t>(inst.a)].dtype;
    Val& r = v[n];
    if (inst.op == Opcode::kInput) r = inputs[static_cast<std::size_t>(inst.imm)];
    else if (inst.op == Opcode::kConst) r = {inst.fimm, inst.imm};
    else if (inst.op == Opcode::kIndex) r = {0, index};
    else if (inst.op == Opcode::kCast) r = cast(from, inst.dtype, a);
    else if (inst.op == Opcode::kSelect) r = a.i ? b : c;
    else if (inst.op >= Opcode::kEq && inst.op <= Opcode::kGe) r = {0, compare(inst.op, from, a, b)};
    else if (inst.op == Opcode::kRandom) {
      const auto seed = static_cast<std::uint64_t>(a.i), step = static_cast<std::uint64_t>(b.i),
                 at_index = static_cast<std::uint64_t>(c.i);
      const auto low = [](std::uint64_t w) { return static_cast<std::uint32_t>(w); };
      r = {uniform_from_bits(philox({low(at_index), low(at_index >> 32), low(step), low(step >> 32)}, low(seed),
                                    low(seed >> 32) ^ low(static_cast<std::uint64_t>(inst.imm)))[0]),
           0};
    } else if (is_floating(inst.dtype))
      r = {round_to(inst.dtype, float_op(inst.op, a.f, b.f, inst.dtype == DType::kFloat32)), 0};
    else r = {0, int_op(inst.op, inst.dtype, a.i, b.i)};
  }
  std::vector<Val> results;
  for (const int id : e.results) results.push_back(v[static_cast<std::size_t>(id)]);
  return results;
}

Val reduce(ir::ReduceOp op, DType t, Val acc, Val x) {
  static constexpr Opcode kOps[] = {Opcode::kAdd, Opcode::kMul, Opcode::kMax, Opcode::kMin};
  const Opcode o = kOps[static_cast<int>(op)];
  if (is_floating(t)) return {float_op(o, acc.f, x.f, false), 0};  // sums in double: the exact answer
  return {0, int_op(o, t, acc.i, x.i)};
}

double ulp_of(DType t, double v) {
  const int digits = t == DType::kBFloat16 ? 8 : t == DType::kFloat16 ? 11 : t == DType::kFloat64 ? 53 : 24;
  const int lowest = t == DType::kFloat16 ? -24 : t == DType::kFloat64 ? -1074 : -149;
  return v == 0 ? std::ldexp(1.0, lowest) : std::ldexp(1.0, std::max(std::ilogb(v) - digits + 1, lowest));
}

}  // namespace

Buffer::Buffer(DType dtype, int64_t count) : dtype_(dtype), count_(count) {
  bytes_.assign(2 * kGuard + static_cast<std::size_t>(count) * size_of(dtype), 0xA5);
  std::memset(data(), 0, static_cast<std::size_t>(count) * size_of(dtype));
}
double Buffer::get(int64_t i) const {
  const Val v = load(dtype_, static_cast<const std::uint8_t*>(data()) + static_cast<std::size_t>(i) * size_of(dtype_));
  return is_floating(dtype_)        ? v.f
         : dtype_ == DType::kUInt64 ? static_cast<double>(static_cast<std::uint64_t>(v.i))
                                    : static_cast<double>(v.i);
}
void Buffer::set(int64_t i, double value) {
  store(
      dtype_, static_cast<std::uint8_t*>(data()) + static_cast<std::size_t>(i) * size_of(dtype_),
      {value,
       is_floating(dtype_) || std::isnan(value) ? 0 : saturate(dtype_ == DType::kBool ? DType::kInt8 : dtype_, value)});
}
bool Buffer::guards_intact() const {
  for (std::size_t i = 0; i < kGuard; ++i)
    if (bytes_[i] != 0xA5 || bytes_[bytes_.size() - 1 - i] != 0xA5) return false;
  return true;
}

void interpret(const ir::LoopNest& nest, std::vector<Buffer>& buffers) {
  const auto rank = static_cast<std::size_t>(nest.rank());
  const int64_t outer = nest.outer_points(), inner = nest.inner_points();
  std::vector<Val> locals(static_cast<std::size_t>(nest.num_locals));
  for (int64_t o = 0; o < outer; ++o)
    for (const auto& stage : nest.stages) {
      std::vector<DType> types;
      for (const int r : stage.expr.results)
        types.push_back(compute_type(stage.expr.insts[static_cast<std::size_t>(r)].dtype));
      for (std::size_t r = 0; r < stage.results.size(); ++r)
        if (const auto* red = std::get_if<ir::ReduceResult>(&stage.results[r])) {
          const double inf = std::numeric_limits<double>::infinity();
          const bool max = red->op == ir::ReduceOp::kMax;
          Val& l = locals[static_cast<std::size_t>(red->local)];
          l = {red->op == ir::ReduceOp::kSum    ? 0
               : red->op == ir::ReduceOp::kProd ? 1
               : max                            ? -inf
                                                : inf,
               red->op == ir::ReduceOp::kProd};
          if (red->op >= ir::ReduceOp::kMax && !is_floating(types[r]))
            l.i = types[r] == DType::kBool ? !max : saturate(types[r], max ? -inf : inf);
        }
      for (int64_t i = 0; i < (stage.inner ? inner : 1); ++i) {
        const int64_t point = o * inner + i;
        std::vector<int64_t> at(rank);
        int64_t rest = point;
        for (std::size_t d = rank; d-- > 0; rest /= nest.extents[d]) at[d] = rest % nest.extents[d];
        const auto element = [&](const ir::Access& a, int first) {
          int64_t e = a.offset;
          for (std::size_t d = 0; d < a.strides.size(); ++d) e += a.strides[d] * at[d];
          Buffer& b = buffers[static_cast<std::size_t>(first + a.buffer)];
          EXPECT_TRUE(e >= 0 && e < b.count());
          return b.as<std::uint8_t>() + static_cast<std::size_t>(e) * size_of(b.dtype());
        };
        std::vector<Val> inputs;
        for (std::size_t l = 0; l < stage.loads.size(); ++l)
          inputs.push_back(load(stage.expr.inputs[l], element(stage.loads[l], 0)));
        for (const int l : stage.locals) inputs.push_back(locals[static_cast<std::size_t>(l)]);
        const auto results = evaluate(stage.expr, inputs, point);
        for (std::size_t r = 0; r < results.size(); ++r) {
          if (const auto* s = std::get_if<ir::StoreResult>(&stage.results[r]))
            store(s->dtype, element(s->access, nest.num_inputs), results[r]);
          else if (const auto* red = std::get_if<ir::ReduceResult>(&stage.results[r]))
            locals[static_cast<std::size_t>(red->local)] =
                reduce(red->op, types[r], locals[static_cast<std::size_t>(red->local)], results[r]);
          else locals[static_cast<std::size_t>(std::get<ir::LocalResult>(stage.results[r]).local)] = results[r];
        }
      }
      for (std::size_t r = 0; r < stage.results.size(); ++r)
        if (const auto* red = std::get_if<ir::ReduceResult>(&stage.results[r])) {
          Val& l = locals[static_cast<std::size_t>(red->local)];
          l.f = round_to(types[r], l.f);
        }
    }
}

codegen::CompiledNest compile_one(const ir::LoopNest& nest) {
  const ir::LoopNest* p = &nest;
  return codegen::compile({&p, 1})[0];
}

void run(const codegen::CompiledNest& kernel, std::vector<Buffer>& buffers, int64_t begin, int64_t end) {
  std::vector<void*> args;
  for (auto& b : buffers) args.push_back(b.data());
  kernel.fn(args.data(), begin, end);
}

/// The code for 16 lanes as LLVM makes it for machines with AVX2: what AVX-512 gets, but for the last step.
codegen::CompiledNest compile_wide(const ir::LoopNest& nest) {
  const codegen::Isa isa{.lanes = 16, .avx512 = true, .cpu = "x86-64-v3", .tune = "generic"};
  const auto schedule = codegen::make_schedule(nest, isa.lanes);
  const codegen::NestFunction function{&nest, &schedule, "wide"};
  const auto object = codegen::load_object(codegen::compile_object({&function, 1}, isa));
  return {reinterpret_cast<codegen::CompiledNest::Fn>(object->address("wide")), schedule.units, 0, false, object};
}

void check_kernel(const ir::LoopNest& nest, const codegen::CompiledNest& kernel, std::vector<Buffer>& buffers,
                  double ulps, double absolute) {
  auto expected = buffers, split = buffers;
  const auto before = buffers;
  interpret(nest, expected);
  run(kernel, buffers, 0, kernel.units);
  for (const int64_t piece : {int64_t{1}, int64_t{3}, (kernel.units + 1) / 2}) {
    if (piece >= kernel.units) continue;
    split = before;
    for (int64_t end = kernel.units; end > 0; end -= std::min(end, piece))
      run(kernel, split, std::max<int64_t>(0, end - piece), end);
    for (std::size_t i = 0; i < buffers.size(); ++i)
      EXPECT_TRUE(split[i].same_bytes(buffers[i])) << "units in pieces of " << piece;
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_TRUE(buffers[i].guards_intact()) << "buffer " << i;
    if (i < static_cast<std::size_t>(nest.num_inputs)) {
      EXPECT_TRUE(buffers[i].same_bytes(before[i])) << "input " << i << " was written";
      continue;
    }
    int shown = 0;
    for (int64_t e = 0; e < buffers[i].count() && shown < 5; ++e) {
      const double got = buffers[i].get(e), want = expected[i].get(e);
      if (got == want || (std::isnan(got) && std::isnan(want))) continue;
      const double tolerance =
          is_floating(buffers[i].dtype()) ? std::max(absolute, ulps * ulp_of(buffers[i].dtype(), want)) : 0;
      if (std::fabs(got - want) <= tolerance) continue;
      ADD_FAILURE() << "output " << i - static_cast<std::size_t>(nest.num_inputs) << " [" << e << "] of "
                    << name_of(buffers[i].dtype()) << " is " << got << ", expected " << want
                    << " (input 0: " << (nest.num_inputs ? buffers[0].get(std::min(e, buffers[0].count() - 1)) : 0)
                    << ")";
      ++shown;
    }
  }
}

void check(const ir::LoopNest& nest, std::vector<Buffer>& buffers, double ulps, double absolute,
           const std::string& what) {
  SCOPED_TRACE(what);
  ASSERT_EQ(buffers.size(), static_cast<std::size_t>(nest.num_inputs + nest.num_outputs));
  auto wide = buffers;
  check_kernel(nest, compile_one(nest), buffers, ulps, absolute);
  SCOPED_TRACE("16 lanes");
  check_kernel(nest, compile_wide(nest), wide, ulps, absolute);
}

void fill(Buffer& b, std::uint64_t seed) {
  PhiloxStream rng(seed, 1);
  for (int64_t i = 0; i < b.count(); ++i) {
    const double v = static_cast<double>(rng.below(41)) - (is_floating(b.dtype()) || is_signed(b.dtype()) ? 20.0 : 0.0);
    b.set(i, b.dtype() == DType::kBool ? static_cast<double>(rng.below(2)) : is_floating(b.dtype()) ? v / 4 : v);
  }
}
void fill_uniform(Buffer& b, double low, double high, std::uint64_t seed) {
  PhiloxStream rng(seed, 2);
  for (int64_t i = 0; i < b.count(); ++i) b.set(i, low + (high - low) * rng.uniform64());
}

ir::Access dense(int buffer, const std::vector<int64_t>& extents) {
  ir::Access a{buffer, 0, std::vector<int64_t>(extents.size())};
  int64_t stride = 1;
  for (std::size_t d = extents.size(); d-- > 0; stride *= extents[d]) a.strides[d] = stride;
  return a;
}

ir::Expr expression(const std::vector<DType>& inputs, const Formula& formula) {
  ir::ExprBuilder b;
  std::vector<ir::Scalar> in;
  for (std::size_t i = 0; i < inputs.size(); ++i) in.push_back(b.input(static_cast<int>(i), inputs[i]));
  for (const auto& r : formula(b, in)) b.result(r);
  return b.take();
}

ir::LoopNest elementwise(const std::vector<int64_t>& extents, const std::vector<DType>& inputs, DType output,
                         const std::function<ir::Scalar(ir::ExprBuilder&, const std::vector<ir::Scalar>&)>& formula) {
  ir::Stage stage;
  for (std::size_t i = 0; i < inputs.size(); ++i) stage.loads.push_back(dense(static_cast<int>(i), extents));
  stage.expr = expression(inputs, [&](auto& b, const auto& in) { return std::vector{formula(b, in)}; });
  stage.results = {ir::StoreResult{dense(0, extents), output}};
  return {.extents = extents,
          .num_outer = static_cast<int>(extents.size()),
          .num_inputs = static_cast<int>(inputs.size()),
          .num_outputs = 1,
          .stages = {stage}};
}

}  // namespace undertow::codegen_test
