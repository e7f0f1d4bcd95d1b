// SPDX-License-Identifier: Apache-2.0
// data/padding.h: batches of rows whose shapes differ.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "undertow/data/dataset.h"

namespace undertow::data {

/// Pads the columns that `padding` names, or all where it is empty, and stacks the others. Extents that are left open
/// become `boundary` where it is not negative, else the largest in the batch. Throws DataError naming column and row
/// where a row is larger than the shape, or has another rank.
std::shared_ptr<CollateOp> pad_collate(std::vector<std::string> columns, PadInfo padding, std::int64_t boundary);

}  // namespace undertow::data
