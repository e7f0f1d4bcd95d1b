// SPDX-License-Identifier: Apache-2.0
// backend/cpu/convert.h: half types to and from float32, in bulk.
#pragma once

#include <cstdint>

#include "undertow/base/dtype.h"

namespace undertow::backend::cpu {

/// `dtype` is kBFloat16 or kFloat16. Parallel.
void widen(DType dtype, const void* from, float* to, std::int64_t count);
/// Rounds to nearest even.
void narrow(DType dtype, const float* from, void* to, std::int64_t count);

}  // namespace undertow::backend::cpu
