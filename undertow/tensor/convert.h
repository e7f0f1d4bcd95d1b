// SPDX-License-Identifier: Apache-2.0
// tensor/convert.h: one element in another dtype, as Tensor::to converts.
#pragma once

#include <type_traits>

#include "undertow/base/dtype.h"

namespace undertow {

/// C++ conversion rules; to bool: non-zero. Half types go through float.
template <typename From, typename To>
To convert(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>) return static_cast<float>(v) != 0.f;
    else return v != From{};
  } else if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>) {
    return convert<float, To>(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>) {
    return To(static_cast<float>(v));
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace undertow
