// SPDX-License-Identifier: Apache-2.0
// ops/fill.h: ranges, one-hot rows and masks of lengths.
#pragma once

#include "undertow/ops/ops.h"

namespace undertow::ops {

/// `steps` numbers from start to end, both included; start and end may be tensors of rank 0.
Tensor linspace(const Operand& start, const Operand& end, std::int64_t steps, DType dtype = DType::kFloat32);
/// base^linspace
Tensor logspace(const Operand& start, const Operand& end, std::int64_t steps, double base = 10,
                DType dtype = DType::kFloat32);
/// start, start + step, ... before `end`.
Tensor range(std::int64_t start, std::int64_t end, std::int64_t step, DType dtype = DType::kInt64);
Tensor range(double start, double end, double step, DType dtype = DType::kFloat32);
/// A new dimension at `axis` (-1: the last) with `on` at the index, `off` elsewhere; numbers out of range give `off`.
Tensor one_hot(const Tensor& indices, std::int64_t depth, const Operand& on, const Operand& off, DType dtype,
               std::int64_t axis);
/// [..., maxlen] bool: position < length.
Tensor sequence_mask(const Tensor& lengths, std::int64_t maxlen);
Tensor full(const Shape& shape, const Operand& value, DType dtype);

}  // namespace undertow::ops
