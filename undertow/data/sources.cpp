// SPDX-License-Identifier: Apache-2.0
// data/sources.cpp: functions and arrays as sources.
#include <algorithm>
#include <cstring>

#include "undertow/base/check.h"
#include "undertow/data/arrays.h"
#include "undertow/data/dataset.h"
#include "undertow/data/lazy.h"
#include "undertow/data/strings.h"

namespace undertow::data {
namespace {

class FunctionSource : public Source {
 public:
  FunctionSource(std::function<Row(std::int64_t)> row, std::int64_t size) : row_(std::move(row)), size_(size) {}
  std::string name() const override { return "GeneratorDataset"; }
  std::int64_t size() const override { return size_; }
  void fetch(std::int64_t index, Row& out) override { out = row_(index); }

 private:
  std::function<Row(std::int64_t)> row_;
  std::int64_t size_;
};

class PassSource : public Source {
 public:
  explicit PassSource(std::function<RowGenerator()> pass) : pass_(std::move(pass)) {}
  std::string name() const override { return "GeneratorDataset"; }
  std::int64_t size() const override { return -1; }
  std::unique_ptr<Cursor> open(std::int64_t) override { return std::make_unique<PassCursor>(pass_()); }

 private:
  class PassCursor : public Cursor {
   public:
    explicit PassCursor(RowGenerator next) : next_(std::move(next)) {}
    bool next(Row& out) override {
      auto row = next_();
      if (row) out = std::move(*row);
      return row.has_value();
    }

   private:
    RowGenerator next_;
  };
  std::function<RowGenerator()> pass_;
};

template <std::size_t kBytes>
void gather_fixed(std::byte* dst, const std::byte* src, std::span<const std::int64_t> indices) {
  for (const std::int64_t i : indices) {
    std::memcpy(dst, src + static_cast<std::size_t>(i) * kBytes, kBytes);
    dst += kBytes;
  }
}

void gather_rows(std::byte* dst, const std::byte* src, std::size_t bytes, std::span<const std::int64_t> indices) {
  switch (bytes) {
    case 0: return;
    case 1: return gather_fixed<1>(dst, src, indices);
    case 4: return gather_fixed<4>(dst, src, indices);
    case 8: return gather_fixed<8>(dst, src, indices);
    case 16: return gather_fixed<16>(dst, src, indices);
    case 32: return gather_fixed<32>(dst, src, indices);
    default: break;
  }
  // Rows lie anywhere; asking for the start of a later one hides most of the wait for memory.
  constexpr std::size_t kAhead = 4;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    if (k + kAhead < indices.size()) {
      const std::byte* p = src + static_cast<std::size_t>(indices[k + kAhead]) * bytes;
      for (std::size_t at = 0; at < std::min<std::size_t>(bytes, 512); at += 64) __builtin_prefetch(p + at);
    }
    std::memcpy(dst + k * bytes, src + static_cast<std::size_t>(indices[k]) * bytes, bytes);
  }
}

}  // namespace

ArraySource::ArraySource(std::string name, std::vector<Tensor> columns)
    : name_(std::move(name)), columns_(std::move(columns)) {
  UNDERTOW_CHECK(!columns_.empty(), ValueError, "{} needs at least one array", name_);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Tensor& t = columns_[c];
    UNDERTOW_CHECK(t.defined() && t.ndim() >= 1, ValueError, "{}: array {} has no first dimension to slice", name_, c);
    UNDERTOW_CHECK(t.shape(0) == columns_[0].shape(0), ValueError, "{}: array 0 has {} rows, array {} has {}", name_,
                   columns_[0].shape(0), c, t.shape(0));
    row_shapes_.emplace_back(std::span(t.shape().begin() + 1, t.shape().end()));
    row_bytes_.push_back(static_cast<std::size_t>(row_shapes_.back().numel()) * undertow::size_of(t.dtype()));
    text_.push_back(is_text(t));
    UNDERTOW_CHECK(!text_.back() || t.ndim() >= 2, ValueError, "{}: array {} is a single text", name_, c);
    data_.push_back(static_cast<const std::byte*>(t.data()));
  }
}

void ArraySource::fetch(std::int64_t index, Row& out) {
  out.resize(columns_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    out[c] = tensor_for({"", columns_[c].dtype(), row_shapes_[c], text_[c]});
    if (row_bytes_[c])
      std::memcpy(out[c].data(), data_[c] + static_cast<std::size_t>(index) * row_bytes_[c], row_bytes_[c]);
  }
}

bool ArraySource::gather(std::span<const std::int64_t> indices, std::span<std::byte* const> column_dst) {
  for (std::size_t c = 0; c < column_dst.size(); ++c)
    if (column_dst[c]) gather_rows(column_dst[c], data_[c], row_bytes_[c], indices);
  return true;
}

void Source::fetch_lazy(const RowContext& at, LazyRow& out) { fetch(at.sample, out.refill(out.fuse())); }
void Source::fetch(std::int64_t, Row&) { throw RuntimeError(name() + " has no random access"); }
std::unique_ptr<Cursor> Source::open(std::int64_t) { throw RuntimeError(name() + " cannot be read in order"); }
bool Source::gather(std::span<const std::int64_t>, std::span<std::byte* const>) { return false; }

Dataset GeneratorDataset(std::function<Row(std::int64_t)> row, std::int64_t size, std::vector<std::string> column_names,
                         const SourceOptions& options) {
  UNDERTOW_CHECK(row, ValueError, "GeneratorDataset needs a function that gives rows");
  UNDERTOW_CHECK(size >= 0, ValueError, "GeneratorDataset: size must not be negative, got {}", size);
  return Dataset(std::make_shared<FunctionSource>(std::move(row), size), std::move(column_names), options);
}
Dataset GeneratorDataset(std::function<RowGenerator()> pass, std::vector<std::string> column_names,
                         const SourceOptions& options) {
  UNDERTOW_CHECK(pass, ValueError, "GeneratorDataset needs a function that starts a pass");
  return Dataset(std::make_shared<PassSource>(std::move(pass)), std::move(column_names), options);
}

Dataset NumpySlicesDataset(std::vector<Tensor> columns, std::vector<std::string> column_names,
                           const SourceOptions& options) {
  if (column_names.empty())
    for (std::size_t c = 0; c < columns.size(); ++c) column_names.push_back(fmt::format("column_{}", c));
  UNDERTOW_CHECK(columns.size() == column_names.size(), ValueError, "NumpySlicesDataset: {} arrays, {} column names",
                 columns.size(), column_names.size());
  return Dataset(std::make_shared<ArraySource>("NumpySlicesDataset", std::move(columns)), std::move(column_names),
                 options);
}

}  // namespace undertow::data
