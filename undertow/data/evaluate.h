// SPDX-License-Identifier: Apache-2.0
// data/evaluate.h: makes rows and batches from items.
#pragma once

#include <span>
#include <vector>

#include "undertow/data/pipeline.h"
#include "undertow/data/stream.h"

namespace undertow::data {

/// Room that a worker keeps between calls.
struct Scratch {
  std::vector<std::int64_t> indices;
  std::vector<std::byte*> columns;
  std::vector<ColumnSpec> specs;
  LazyRow row{Row(), true};
};

/// The row (or whole batch) that `item` stands for. An Error gets a note saying which row it was.
Row evaluate(const Plan& plan, Item& item, Scratch& scratch);
/// The same with columns that may still have to be made.
void evaluate(const Plan& plan, Item& item, Scratch& scratch, LazyRow& row);

/// Writes the item into `target`, made for `specs`. Where it turns out to be of other shapes or dtypes, asks `resize`
/// for another target.
class Resizer {
 public:
  virtual ~Resizer() = default;
  virtual BatchTarget resize(std::span<const ColumnSpec> specs) = 0;
};
void write(const Plan& plan, Item& item, BatchTarget target, std::span<const ColumnSpec> specs, Resizer& resizer,
           Scratch& scratch);

/// Rows in the batch that `item` is; 0 where it is a single row or its size is not known before it is made.
std::size_t batch_rows(const Plan& plan, const Item& item);

}  // namespace undertow::data
