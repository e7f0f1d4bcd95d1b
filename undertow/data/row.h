// SPDX-License-Identifier: Apache-2.0
// data/row.h: a row of columns, and what is known about a column before it is delivered.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "undertow/tensor/tensor.h"

namespace undertow::data {

/// One Tensor per column: a sample, or a whole batch. Up to 8 columns are held inline, without the heap.
class Row {
 public:
  static constexpr std::size_t kInline = 8;

  Row() = default;
  Row(std::initializer_list<Tensor> columns) {
    for (const Tensor& t : columns) push_back(t);
  }
  explicit Row(std::size_t columns) { resize(columns); }
  Row(const Row&) = default;
  Row& operator=(const Row&) = default;
  Row(Row&& o) noexcept { take(o); }
  Row& operator=(Row&& o) noexcept {
    if (this == &o) return *this;
    clear();
    take(o);
    return *this;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Tensor* begin() { return heap_.empty() ? inline_.data() : heap_.data(); }
  Tensor* end() { return begin() + size_; }
  const Tensor* begin() const { return heap_.empty() ? inline_.data() : heap_.data(); }
  const Tensor* end() const { return begin() + size_; }
  Tensor& operator[](std::size_t i) { return begin()[i]; }
  const Tensor& operator[](std::size_t i) const { return begin()[i]; }
  void push_back(Tensor column) {
    resize(size_ + 1);
    begin()[size_ - 1] = std::move(column);
  }
  void clear() {
    for (std::size_t i = 0; i < size_ && heap_.empty(); ++i) inline_[i] = Tensor();
    heap_.clear();
    size_ = 0;
  }
  void resize(std::size_t columns) {
    if (columns > kInline || !heap_.empty()) {
      if (heap_.empty())
        heap_.assign(std::make_move_iterator(inline_.begin()), std::make_move_iterator(inline_.begin() + size_));
      heap_.resize(columns);
    } else {
      for (std::size_t i = columns; i < size_; ++i) inline_[i] = Tensor();
    }
    size_ = columns;
  }

 private:
  void take(Row& o) {
    if (o.heap_.empty())
      for (std::size_t i = 0; i < o.size_; ++i) inline_[i] = std::move(o.inline_[i]);
    else heap_ = std::move(o.heap_);
    o.heap_.clear();
    size_ = std::exchange(o.size_, 0);
  }

  std::array<Tensor, kInline> inline_;
  std::vector<Tensor> heap_;  // all columns, once there are more than kInline
  std::size_t size_ = 0;
};

/// A column as it is delivered: `shape` is the full shape, including the batch's dimension where there is one.
struct ColumnSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  bool text = false;  ///< of texts (strings.h), whose room is the last extent

  std::size_t bytes() const { return static_cast<std::size_t>(shape.numel()) * size_of(dtype); }
  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

}  // namespace undertow::data
