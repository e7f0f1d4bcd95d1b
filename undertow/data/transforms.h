// SPDX-License-Identifier: Apache-2.0
// data/transforms.h: operations for map() on numbers and images.
//
//   dataset.map(data::vision::Rescale(1.0 / 255, 0), {.input_columns = {"image"}})
//          .map(data::vision::HWC2CHW(), {.input_columns = {"image"}});
#pragma once

#include <memory>
#include <vector>

#include "undertow/data/source.h"

namespace undertow::data::transforms {

/// The column in another dtype; float to integer truncates.
std::shared_ptr<MapOp> TypeCast(DType dtype);

}  // namespace undertow::data::transforms

namespace undertow::data::vision {

/// float32: x * rescale + shift.
std::shared_ptr<MapOp> Rescale(double rescale, double shift);
/// float32: (x - mean) / std per channel, or with one value for all. A 2-D image has one channel. Throws ValueError for
/// lists of different lengths or a std that is not positive, DataError where the channels do not fit.
std::shared_ptr<MapOp> Normalize(std::vector<double> mean, std::vector<double> std, bool is_hwc = true);
/// (H, W, C) to (C, H, W); a 2-D image stays. Throws DataError for other ranks.
std::shared_ptr<MapOp> HWC2CHW();

}  // namespace undertow::data::vision
