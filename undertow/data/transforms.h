// SPDX-License-Identifier: Apache-2.0
// data/transforms.h: operations for map() on columns of any kind. Images: data/vision/vision.h.
//
//   dataset.map(data::transforms::TypeCast(DType::kInt32), {.input_columns = {"label"}});
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "undertow/data/source.h"
#include "undertow/data/vision/vision.h"

namespace undertow::data::transforms {

using Op = std::shared_ptr<MapOp>;

/// The column in another dtype; float to integer truncates.
Op TypeCast(DType dtype);
/// Integers in [0, num_classes) to rows of num_classes values of the same dtype; with smoothing_rate s > 0 float64:
/// 1 - s + s / num_classes in the label's place and s / num_classes elsewhere. Other labels raise DataError.
Op OneHot(std::int64_t num_classes, double smoothing_rate = 0);
/// Every element becomes the value, converted to the column's dtype.
Op Fill(double fill_value);

enum class Relational { kEq, kNe, kLt, kLe, kGt, kGe };
/// Whether each element stands in the relation to the constant, as `dtype`.
Op Mask(Relational relation, double constant, DType dtype = DType::kBool);

/// What Slice takes of one dimension: a range, or places. Negative ones count from the end.
struct SliceOf {
  std::optional<std::int64_t> start, stop;
  std::int64_t step = 1;
  std::optional<std::vector<std::int64_t>> places;
};
/// Keeps the rank: a single place leaves a dimension of 1. Dimensions beyond those named are kept whole.
Op Slice(std::vector<SliceOf> slices);
/// 1-D columns one after the other, between `prepend` and `append` where these are given. axis: 0 or -1.
Op Concatenate(std::int64_t axis = 0, std::optional<Tensor> prepend = std::nullopt,
               std::optional<Tensor> append = std::nullopt);
Op Duplicate();  ///< one column to two
/// Pads at the end of each dimension, or cuts, to the shape; no number (nullopt) keeps a dimension.
Op PadEnd(std::vector<std::optional<std::int64_t>> pad_shape, double pad_value = 0);
/// The different values in the order of their first appearance, the index of each element's value (int32) and how often
/// each occurs (int32): three columns.
Op Unique();

Op Compose(std::vector<Op> transforms);
Op RandomApply(std::vector<Op> transforms, double prob = 0.5);  ///< all of them or none
Op RandomChoice(std::vector<Op> transforms);                    ///< one of them
Op RandomOrder(std::vector<Op> transforms);                     ///< all of them, in any order

}  // namespace undertow::data::transforms
