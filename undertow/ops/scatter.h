// SPDX-License-Identifier: Apache-2.0
// ops/scatter.h: reading and writing at positions that tensors hold.
//
// Nothing is written in place: each function returns the new tensor. Positions are int32 or int64, may be negative, and
// raise IndexError out of range in every mode. Where one place is written several times the updates are applied in
// their order ("update": the last one stays, and is the only one that gets a gradient).
#pragma once

#include <string_view>

#include "undertow/ops/ops.h"

namespace undertow::ops {

/// How an update meets the element that is there: "update", "add", "sub", "mul", "div", "max" or "min".
using ScatterMode = std::string_view;

/// y[i..., index[i..., j, k...], k...] of x: positions along one axis; index has x's rank, and fits into x elsewhere.
Tensor gather_elements(const Tensor& x, const Tensor& index, std::int64_t axis);
Tensor scatter_elements(const Tensor& x, const Tensor& index, const Tensor& updates, std::int64_t axis,
                        ScatterMode mode = "update");
/// The last dimension of `indices` holds positions in x's first dimensions.
Tensor gather_nd(const Tensor& x, const Tensor& indices);
Tensor scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& updates, ScatterMode mode = "update");
/// Whole slices: x[..., indices[i...], ...] along an axis meets updates, whose shape is that of gather(x, indices,
/// axis).
Tensor scatter(const Tensor& x, const Tensor& indices, const Tensor& updates, std::int64_t axis = 0,
               ScatterMode mode = "update");
/// The box x[begin + i * steps] takes the values of `update`, whose shape is the box's.
Tensor slice_update(const Tensor& x, const Tensor& update, std::vector<std::int64_t> begin,
                    std::vector<std::int64_t> steps);
/// Rows of x reduced by segment: y[s] holds what the rows i with segment_ids[i] == s reduce to ("add", "mul", "max" or
/// "min"); the ids' shape is a prefix of x's. A negative id drops its row.
Tensor segment_reduce(const Tensor& x, const Tensor& segment_ids, std::int64_t num_segments, ScatterMode mode);

}  // namespace undertow::ops
