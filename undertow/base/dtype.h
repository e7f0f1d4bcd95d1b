// SPDX-License-Identifier: Apache-2.0
// base/dtype.h: element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "undertow/base/half.h"

namespace undertow {

enum class DType : std::uint8_t {
  kBool,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
};
inline constexpr int kNumDTypes = 13;

/// Bytes of one element.
std::size_t size_of(DType dtype);
/// MindSpore's spelling: "Float32", "Int64", "Bool", ...
std::string_view name_of(DType dtype);
/// NumPy's spelling: "float32", "int64", "bool", ... ("bfloat16" has none in NumPy itself).
std::string_view numpy_name_of(DType dtype);
/// Accepts both spellings. Throws TypeError for anything else.
DType dtype_from_name(std::string_view name);

bool is_floating(DType dtype);
bool is_integral(DType dtype);  ///< Signed and unsigned integers; not bool.
bool is_signed(DType dtype);
bool is_half(DType dtype);  ///< float16 or bfloat16.

/// The type that arithmetic between two tensors is done in. Follows NumPy's lattice, except that an integer meets a
/// float as that float (int64 with float32 gives float32) and float16 with bfloat16 gives float32.
DType promote(DType a, DType b);
/// The type in which values of `dtype` are computed and accumulated: float32 for the half types, else `dtype`.
DType compute_type(DType dtype);

template <typename T>
struct dtype_of;
#define UNDERTOW_DTYPE_OF(type, value) \
  template <>                          \
  struct dtype_of<type> {              \
    static constexpr DType v = value;  \
  };
UNDERTOW_DTYPE_OF(bool, DType::kBool)
UNDERTOW_DTYPE_OF(std::int8_t, DType::kInt8)
UNDERTOW_DTYPE_OF(std::uint8_t, DType::kUInt8)
UNDERTOW_DTYPE_OF(std::int16_t, DType::kInt16)
UNDERTOW_DTYPE_OF(std::uint16_t, DType::kUInt16)
UNDERTOW_DTYPE_OF(std::int32_t, DType::kInt32)
UNDERTOW_DTYPE_OF(std::uint32_t, DType::kUInt32)
UNDERTOW_DTYPE_OF(std::int64_t, DType::kInt64)
UNDERTOW_DTYPE_OF(std::uint64_t, DType::kUInt64)
UNDERTOW_DTYPE_OF(float16, DType::kFloat16)
UNDERTOW_DTYPE_OF(bfloat16, DType::kBFloat16)
UNDERTOW_DTYPE_OF(float, DType::kFloat32)
UNDERTOW_DTYPE_OF(double, DType::kFloat64)
#undef UNDERTOW_DTYPE_OF

/// Calls `f(T{})` with the C++ type of `dtype`.
template <typename F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool: return f(bool{});
    case DType::kInt8: return f(std::int8_t{});
    case DType::kUInt8: return f(std::uint8_t{});
    case DType::kInt16: return f(std::int16_t{});
    case DType::kUInt16: return f(std::uint16_t{});
    case DType::kInt32: return f(std::int32_t{});
    case DType::kUInt32: return f(std::uint32_t{});
    case DType::kInt64: return f(std::int64_t{});
    case DType::kUInt64: return f(std::uint64_t{});
    case DType::kFloat16: return f(float16{});
    case DType::kBFloat16: return f(bfloat16{});
    case DType::kFloat64: return f(double{});
    case DType::kFloat32: break;
  }
  return f(float{});
}

}  // namespace undertow
