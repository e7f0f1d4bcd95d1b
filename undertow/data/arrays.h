// SPDX-License-Identifier: Apache-2.0
// data/arrays.h: rows as slices of arrays in memory.
#pragma once

#include <string>
#include <vector>

#include "undertow/data/source.h"

namespace undertow::data {

/// Row i is columns[c][i] of every column. Gathers batches without a Tensor per row.
class ArraySource : public Source {
 public:
  /// Throws ValueError where an array has rank 0 or lengths differ.
  ArraySource(std::string name, std::vector<Tensor> columns);
  std::string name() const override { return name_; }
  std::int64_t size() const override { return columns_[0].shape(0); }
  void fetch(std::int64_t index, Row& out) override;
  bool gather(std::span<const std::int64_t> indices, std::span<std::byte* const> column_dst) override;
  bool waits() const override { return false; }

 private:
  std::string name_;
  std::vector<Tensor> columns_;
  std::vector<Shape> row_shapes_;
  std::vector<std::size_t> row_bytes_;
  std::vector<const std::byte*> data_;
  std::vector<bool> text_;
};

}  // namespace undertow::data
