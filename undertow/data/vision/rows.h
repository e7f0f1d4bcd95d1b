// SPDX-License-Identifier: Apache-2.0
// data/vision/rows.h: rows of pixels on their way to where an image is wanted: flipped, through arithmetic of float32,
// in another layout and dtype. A row stays in the nearest cache for all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "undertow/data/vision/image.h"

namespace undertow::data::vision {

/// Memory that grows and is not cleared.
template <typename T>
class Room {
 public:
  T* of(std::int64_t n) {
    if (n > size_) {
      data_.reset(new T[static_cast<std::size_t>(n)]);
      size_ = n;
    }
    return data_.get();
  }

 private:
  std::unique_ptr<T[]> data_;
  std::int64_t size_ = 0;
};

/// An image, or part of one, in memory.
template <typename T>
struct View {
  const T* data = nullptr;
  std::int64_t h = 0, w = 0, c = 1;
  std::int64_t stride = 0;  ///< from row to row, in values

  const T* row(std::int64_t y) const { return data + y * stride; }
};

/// x * a + b or (x - a) / b, in float32, with a pair for each channel or one for all.
struct Arithmetic {
  enum class Kind { kScale, kNormalize } kind;
  std::vector<float> a, b;
};

/// What becomes of every row.
struct Finish {
  std::vector<Arithmetic> arithmetic;
  bool as_float = false;  ///< values become float32, even without arithmetic
  bool planes = false;    ///< (C, H, W)
  DType dtype = DType::kUInt8;
  bool flip_y = false;

  /// Neither arithmetic nor another layout or dtype.
  bool plain(DType source) const { return !as_float && !planes && dtype == source; }
};

/// Rows of T to `out`, an image of `h` x `w` x `c` as `finish` says. Rows may come in any order, once each.
template <typename T>
class Rows {
 public:
  Rows(const Finish& finish, const Extent& e, std::byte* out);
  /// Where row y may be written, w * c values and kSlack more; then done(y).
  T* row(std::int64_t y);
  void done(std::int64_t y);
  /// Row y lies at `pixels`.
  void take(std::int64_t y, const T* pixels);

 private:
  std::byte* place(std::int64_t y, std::int64_t channel) const;
  void finish(const T* in, std::int64_t n, std::int64_t channel, std::byte* out);

  const Finish& finish_;
  Extent e_;
  std::byte* out_;
  bool plain_;
  std::size_t item_;
  std::vector<Arithmetic> along_;  // with the values repeated along a row of pixels
};

/// X(T) for the element type of every dtype.
#define UNDERTOW_EACH_DTYPE(X)                                                                                  \
  X(bool)                                                                                                       \
  X(std::int8_t)                                                                                                \
  X(std::uint8_t)                                                                                               \
  X(std::int16_t) X(std::uint16_t) X(std::int32_t) X(std::uint32_t) X(std::int64_t) X(std::uint64_t) X(float16) \
      X(bfloat16) X(float) X(double)

}  // namespace undertow::data::vision
