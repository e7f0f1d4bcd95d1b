// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/padding.h"

#include <algorithm>
#include <cstring>

#include "undertow/base/check.h"
#include "undertow/data/node.h"
#include "undertow/data/strings.h"

namespace undertow::data {
namespace {

void fill(const Tensor& out, double value) {
  dispatch(out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::fill_n(static_cast<T*>(out.data()), out.size(), static_cast<T>(value));
  });
}

/// Copies `from`, of any extents up to `extents`, into the corner of a block of `extents`.
void copy_corner(const std::byte* from, std::byte* to, const Shape& shape, const Shape& extents, int d,
                 std::size_t element) {
  std::size_t from_step = element, to_step = element;
  for (int k = d + 1; k < shape.rank(); ++k) {
    from_step *= static_cast<std::size_t>(shape[k]);
    to_step *= static_cast<std::size_t>(extents[k]);
  }
  if (d >= shape.rank() - 1) {
    const std::size_t bytes = d < 0 ? element : element * static_cast<std::size_t>(shape.rank() ? shape[d] : 1);
    if (bytes) std::memcpy(to, from, bytes);
    return;
  }
  for (std::int64_t i = 0; i < shape[d]; ++i, from += from_step, to += to_step)
    copy_corner(from, to, shape, extents, d + 1, element);
}

class PadCollate final : public CollateOp {
 public:
  PadCollate(std::vector<std::string> columns, PadInfo padding, std::int64_t boundary)
      : columns_(std::move(columns)), padding_(std::move(padding)), boundary_(boundary) {}

  Row operator()(std::span<const Row> rows, const RowContext&) override {
    Row out(columns_.size());
    for (std::size_t c = 0; c < out.size(); ++c) {
      const auto how = padding_.find(columns_[c]);
      if (padding_.empty()) out[c] = pad(rows, c, {});
      else if (how != padding_.end()) out[c] = pad(rows, c, how->second);
      else out[c] = stack_one(rows, c);
    }
    return out;
  }

 private:
  Tensor stack_one(std::span<const Row> rows, std::size_t c) const {
    std::vector<Tensor> column;
    for (const Row& r : rows) column.push_back(r[c]);
    return stack_column(columns_[c], column);
  }

  Tensor pad(std::span<const Row> rows, std::size_t c, const Padding& how) const {
    const std::string& name = columns_[c];
    const Tensor& first = rows[0][c];
    const bool text = is_text(first);
    const Shape first_shape = text ? text_shape(first) : first.shape();
    Shape extents = first_shape;
    const auto rank = static_cast<std::size_t>(extents.rank());
    UNDERTOW_CHECK(!how.shape || how.shape->size() == rank, DataError,
                   "padding: column '{}' has {} dimensions, its pad shape has {}", name, rank,
                   how.shape ? how.shape->size() : 0);
    std::int64_t width = 1;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Tensor& t = rows[r][c];
      UNDERTOW_CHECK(
          is_text(t) == text && t.dtype() == first.dtype() && t.ndim() == first.ndim(), DataError,
          "padding: rows of one batch differ in column '{}': row 0 of the batch is {} of shape {}, row {} is "
          "{} of shape {}",
          name, name_of(first.dtype()), first.shape().str(), r, name_of(t.dtype()), t.shape().str());
      for (int d = 0; d < extents.rank(); ++d) extents[d] = std::max(extents[d], t.shape(d));
      if (text) width = std::max(width, t.shape().back());
    }
    for (int d = 0; d < extents.rank(); ++d) {
      const std::int64_t given = how.shape ? (*how.shape)[static_cast<std::size_t>(d)] : -1;
      const std::int64_t wanted = given >= 0 ? given : boundary_ >= 0 ? boundary_ : extents[d];
      UNDERTOW_CHECK(wanted >= extents[d], DataError,
                     "padding: column '{}' has a row of {} in dimension {}, more than the {} it is to be padded to",
                     name, extents[d], d, wanted);
      extents[d] = wanted;
    }
    if (text) {
      const Tensor filler = text_of(how.text);
      width = std::max(width, filler.shape().back());
      extents.push_back(width);
    }
    Shape whole{static_cast<std::int64_t>(rows.size())};
    for (const std::int64_t d : extents) whole.push_back(d);
    Tensor out = tensor_for({name, first.dtype(), whole, text});
    if (text) fill_text(out, how.text);
    else fill(out, how.value);
    const std::size_t element = size_of(first.dtype());
    const std::size_t step = static_cast<std::size_t>(extents.numel()) * element;
    auto* to = static_cast<std::byte*>(out.data());
    for (const Row& row : rows) {
      const Tensor t = text ? widen(row[c], width) : row[c];
      if (t.nbytes()) copy_corner(static_cast<const std::byte*>(t.data()), to, t.shape(), extents, 0, element);
      to += step;
    }
    return out;
  }

  static void fill_text(const Tensor& out, const std::string& text) {
    fill(out, 0);
    if (text.empty() || out.dtype() != DType::kUInt32) return;
    const Tensor one = widen(text_of(text), out.shape().back());
    auto* p = static_cast<std::byte*>(out.data());
    for (std::int64_t i = text_shape(out).numel(); i > 0; --i, p += one.nbytes())
      std::memcpy(p, one.data(), one.nbytes());
  }

  std::vector<std::string> columns_;
  PadInfo padding_;
  std::int64_t boundary_;
};

}  // namespace

std::shared_ptr<CollateOp> pad_collate(std::vector<std::string> columns, PadInfo padding, std::int64_t boundary) {
  return std::make_shared<PadCollate>(std::move(columns), std::move(padding), boundary);
}

}  // namespace undertow::data
