// SPDX-License-Identifier: Apache-2.0
#include "undertow/codegen/runtime.h"

#include <cmath>
#include <cstdint>

namespace undertow::codegen {
namespace {

using ir::Opcode;

template <auto F>
void lanes1(const void* x, const void*, void* r, int n) {
  for (int i = 0; i < n; ++i) static_cast<double*>(r)[i] = F(static_cast<const double*>(x)[i]);
}
template <typename T, auto F>
void lanes2(const void* x, const void* y, void* r, int n) {
  for (int i = 0; i < n; ++i) static_cast<T*>(r)[i] = F(static_cast<const T*>(x)[i], static_cast<const T*>(y)[i]);
}
/// Only the lanes that the polynomial cannot do.
template <auto F>
void lanes_large(const void* x, const void*, void* r, int n) {
  for (int i = 0; i < n; ++i) {
    const float v = static_cast<const float*>(x)[i];
    if (std::fabs(v) > 1e5f) static_cast<float*>(r)[i] = F(v);
  }
}

float sin_f32(float x) { return std::sin(x); }
float cos_f32(float x) { return std::cos(x); }
float rem_f32(float x, float y) { return std::fmod(x, y); }
double exp_f64(double x) { return std::exp(x); }
double expm1_f64(double x) { return std::expm1(x); }
double log_f64(double x) { return std::log(x); }
double log1p_f64(double x) { return std::log1p(x); }
double sin_f64(double x) { return std::sin(x); }
double cos_f64(double x) { return std::cos(x); }
double tanh_f64(double x) { return std::tanh(x); }
double erf_f64(double x) { return std::erf(x); }
double rem_f64(double x, double y) { return std::fmod(x, y); }
double pow_f64(double x, double y) { return std::pow(x, y); }
double atan2_f64(double y, double x) { return std::atan2(y, x); }

/// Wraps around; a negative power is that of the reciprocal, truncated (0 to a negative power gives 0).
template <typename T>
T pow_int(T x, T y) {
  if (y < 0) return x == 1 ? T{1} : x == static_cast<T>(-1) ? static_cast<T>(y & 1 ? -1 : 1) : T{0};
  std::uint64_t base = static_cast<std::uint64_t>(x), result = 1;
  for (auto e = static_cast<std::uint64_t>(y); e; e >>= 1, base *= base)
    if (e & 1) result *= base;
  return static_cast<T>(result);
}

struct Entry {
  Opcode op;
  DType dtype;
  const char* symbol;
};
using Lanes = void (*)(const void*, const void*, void*, int);
template <typename T>
constexpr Lanes kPowInt = lanes2<T, pow_int<T>>;

constexpr Entry kEntries[] = {
    {Opcode::kRem, DType::kFloat32, "undertow_rem_f32"},     {Opcode::kExp, DType::kFloat64, "undertow_exp_f64"},
    {Opcode::kExpm1, DType::kFloat64, "undertow_expm1_f64"}, {Opcode::kLog, DType::kFloat64, "undertow_log_f64"},
    {Opcode::kLog1p, DType::kFloat64, "undertow_log1p_f64"}, {Opcode::kSin, DType::kFloat64, "undertow_sin_f64"},
    {Opcode::kCos, DType::kFloat64, "undertow_cos_f64"},     {Opcode::kTanh, DType::kFloat64, "undertow_tanh_f64"},
    {Opcode::kErf, DType::kFloat64, "undertow_erf_f64"},     {Opcode::kRem, DType::kFloat64, "undertow_rem_f64"},
    {Opcode::kPow, DType::kFloat64, "undertow_pow_f64"},     {Opcode::kAtan2, DType::kFloat64, "undertow_atan2_f64"},
    {Opcode::kPow, DType::kInt8, "undertow_pow_i8"},         {Opcode::kPow, DType::kUInt8, "undertow_pow_u8"},
    {Opcode::kPow, DType::kInt16, "undertow_pow_i16"},       {Opcode::kPow, DType::kUInt16, "undertow_pow_u16"},
    {Opcode::kPow, DType::kInt32, "undertow_pow_i32"},       {Opcode::kPow, DType::kUInt32, "undertow_pow_u32"},
    {Opcode::kPow, DType::kInt64, "undertow_pow_i64"},       {Opcode::kPow, DType::kUInt64, "undertow_pow_u64"},
};

void* address(Lanes f) { return reinterpret_cast<void*>(f); }

}  // namespace

const char* runtime_symbol(Opcode op, DType dtype) {
  for (const auto& e : kEntries)
    if (e.op == op && e.dtype == dtype) return e.symbol;
  return nullptr;
}

std::span<const std::pair<const char*, void*>> runtime_symbols() {
  static const std::pair<const char*, void*> symbols[] = {
      {"undertow_sin_large_f32", address(lanes_large<sin_f32>)},
      {"undertow_cos_large_f32", address(lanes_large<cos_f32>)},
      {"undertow_rem_f32", address(lanes2<float, rem_f32>)},
      {"undertow_exp_f64", address(lanes1<exp_f64>)},
      {"undertow_expm1_f64", address(lanes1<expm1_f64>)},
      {"undertow_log_f64", address(lanes1<log_f64>)},
      {"undertow_log1p_f64", address(lanes1<log1p_f64>)},
      {"undertow_sin_f64", address(lanes1<sin_f64>)},
      {"undertow_cos_f64", address(lanes1<cos_f64>)},
      {"undertow_tanh_f64", address(lanes1<tanh_f64>)},
      {"undertow_erf_f64", address(lanes1<erf_f64>)},
      {"undertow_rem_f64", address(lanes2<double, rem_f64>)},
      {"undertow_pow_f64", address(lanes2<double, pow_f64>)},
      {"undertow_atan2_f64", address(lanes2<double, atan2_f64>)},
      {"undertow_pow_i8", address(kPowInt<std::int8_t>)},
      {"undertow_pow_u8", address(kPowInt<std::uint8_t>)},
      {"undertow_pow_i16", address(kPowInt<std::int16_t>)},
      {"undertow_pow_u16", address(kPowInt<std::uint16_t>)},
      {"undertow_pow_i32", address(kPowInt<std::int32_t>)},
      {"undertow_pow_u32", address(kPowInt<std::uint32_t>)},
      {"undertow_pow_i64", address(kPowInt<std::int64_t>)},
      {"undertow_pow_u64", address(kPowInt<std::uint64_t>)},
  };
  return symbols;
}

}  // namespace undertow::codegen
