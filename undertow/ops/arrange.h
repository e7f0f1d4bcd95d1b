// SPDX-License-Identifier: Apache-2.0
// ops/arrange.h: repeating, reversing, cutting and joining tensors. Axes may be negative.
#pragma once

#include "undertow/ops/ops.h"

namespace undertow::ops {

/// Repeated dims[i] times along each dimension; missing leading dims count as 1.
Tensor tile(const Tensor& x, std::vector<std::int64_t> dims);
/// Each element (slice) `repeats` times in a row along an axis; without one, of the flattened tensor.
Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> axis = {});
/// Element i repeats[i] times.
Tensor repeat_interleave(const Tensor& x, const std::vector<std::int64_t>& repeats, std::int64_t axis);
Tensor flip(const Tensor& x, Axes axes);
/// Shifted cyclically along each axis; without axes, the flattened tensor.
Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shifts, const Axes& axes);
/// Turned k times by 90 degrees from the first axis towards the second.
Tensor rot90(const Tensor& x, std::int64_t k, const Axes& axes);
Tensor moveaxis(const Tensor& x, Axes source, Axes destination);
/// broadcast_to where -1 keeps an extent.
Tensor expand(const Tensor& x, std::vector<std::int64_t> shape);
/// x with at least `rank` dimensions, new ones in front (the third of 3 at the end, as NumPy).
Tensor at_least(const Tensor& x, int rank);

/// Pieces of the given extents, which must add up to the axis.
std::vector<Tensor> split_sizes(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t axis);
/// Pieces of `size`; the last may be smaller.
std::vector<Tensor> split_size(const Tensor& x, std::int64_t size, std::int64_t axis);
/// `sections` pieces whose extents differ by at most 1.
std::vector<Tensor> tensor_split(const Tensor& x, std::int64_t sections, std::int64_t axis);
/// Cut before each index, as NumPy slices.
std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<std::int64_t>& indices, std::int64_t axis);
/// At most `chunks` pieces of equal extent; the last may be smaller.
std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis);
std::vector<Tensor> unstack(const Tensor& x, std::int64_t axis);
Tensor narrow(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t length);
Tensor select_at(const Tensor& x, std::int64_t axis, std::int64_t index);  ///< without the axis

Tensor hstack(const std::vector<Tensor>& xs);
Tensor vstack(const std::vector<Tensor>& xs);
Tensor dstack(const std::vector<Tensor>& xs);
Tensor column_stack(const std::vector<Tensor>& xs);
/// One axis a tensor; "xy" exchanges the first two.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& xs, const std::string& indexing = "xy");
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& xs);
/// Every combination of elements of vectors as rows.
Tensor cartesian_prod(const std::vector<Tensor>& xs);
/// Differences of neighbours along an axis, n times.
Tensor diff(const Tensor& x, std::int64_t n, std::int64_t axis);
/// The first seq_lengths[i] elements along seq_axis are reversed in row i of batch_axis.
Tensor reverse_sequence(const Tensor& x, const Tensor& seq_lengths, std::int64_t seq_axis, std::int64_t batch_axis);

/// TensorFlow's strided slice: bit i of a mask is about entry i of begin, end and strides.
struct StridedSliceMasks {
  std::int64_t begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink_axis = 0;
};
Tensor strided_slice(const Tensor& x, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& end,
                     const std::vector<std::int64_t>& strides, const StridedSliceMasks& masks = {});

}  // namespace undertow::ops
