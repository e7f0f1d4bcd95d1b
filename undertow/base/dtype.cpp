// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/dtype.h"

#include <array>
#include <string>

#include "undertow/base/error.h"

namespace undertow {
namespace {

struct Entry {
  std::size_t size;
  std::string_view name;
  std::string_view numpy;
  bool floating, integral, is_signed;
  int rank;  // order of promotion among one kind
};

constexpr std::array<Entry, kNumDTypes> kEntries{{
    {1, "Bool", "bool", false, false, false, 0},
    {1, "Int8", "int8", false, true, true, 1},
    {1, "UInt8", "uint8", false, true, false, 1},
    {2, "Int16", "int16", false, true, true, 2},
    {2, "UInt16", "uint16", false, true, false, 2},
    {4, "Int32", "int32", false, true, true, 3},
    {4, "UInt32", "uint32", false, true, false, 3},
    {8, "Int64", "int64", false, true, true, 4},
    {8, "UInt64", "uint64", false, true, false, 4},
    {2, "Float16", "float16", true, false, true, 5},
    {2, "BFloat16", "bfloat16", true, false, true, 5},
    {4, "Float32", "float32", true, false, true, 6},
    {8, "Float64", "float64", true, false, true, 7},
}};

const Entry& entry(DType d) { return kEntries[static_cast<std::size_t>(d)]; }

}  // namespace

std::size_t size_of(DType d) { return entry(d).size; }
std::string_view name_of(DType d) { return entry(d).name; }
std::string_view numpy_name_of(DType d) { return entry(d).numpy; }
bool is_floating(DType d) { return entry(d).floating; }
bool is_integral(DType d) { return entry(d).integral; }
bool is_signed(DType d) { return entry(d).is_signed; }
bool is_half(DType d) { return d == DType::kFloat16 || d == DType::kBFloat16; }

DType dtype_from_name(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (kEntries[i].name == name || kEntries[i].numpy == name) return static_cast<DType>(i);
  throw TypeError("unknown dtype '" + std::string(name) + "'");
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  const Entry &x = entry(a), &y = entry(b);
  if (x.floating && y.floating) {
    if (x.rank == y.rank) return DType::kFloat32;  // float16 with bfloat16
    return x.rank > y.rank ? a : b;
  }
  if (x.floating) return a;
  if (y.floating) return b;
  if (a == DType::kBool) return b;
  if (b == DType::kBool) return a;
  if (x.is_signed == y.is_signed) return x.rank > y.rank ? a : b;
  const DType s = x.is_signed ? a : b, u = x.is_signed ? b : a;
  if (entry(s).rank > entry(u).rank) return s;
  switch (u) {  // the smallest signed type that holds the unsigned one
    case DType::kUInt8: return DType::kInt16;
    case DType::kUInt16: return DType::kInt32;
    case DType::kUInt32: return DType::kInt64;
    default: return DType::kFloat64;  // as NumPy
  }
}

DType compute_type(DType d) { return is_half(d) ? DType::kFloat32 : d; }

}  // namespace undertow
