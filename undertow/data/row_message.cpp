// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/row_message.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "undertow/base/check.h"
#include "undertow/data/strings.h"

namespace undertow::data {
namespace {

constexpr std::size_t kAlign = 64;

struct ColumnHeader {
  std::uint64_t at = 0;  // of its values, from the message's start
  DType dtype = DType::kFloat32;
  bool defined = false, text = false;
  std::int32_t rank = 0;
  std::array<std::int64_t, Shape::kMaxRank> extents{};

  ColumnSpec spec() const {
    return {"", dtype, Shape(std::span(extents.data(), static_cast<std::size_t>(rank))), text};
  }
};
struct MessageHeader {
  std::uint64_t rows = 0;
};

std::size_t aligned(std::size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

/// Calls each(column, header, where it goes) and gives the end. Layout: the number of rows, the numbers of their
/// columns, all headers, all values.
template <typename Each>
std::size_t lay_out(std::span<const Row> rows, Each each) {
  std::size_t columns = 0;
  for (const Row& row : rows) columns += row.size();
  const std::size_t headers = sizeof(MessageHeader) + rows.size() * sizeof(std::uint64_t);
  std::size_t at = aligned(headers + columns * sizeof(ColumnHeader)), index = 0;
  for (const Row& row : rows)
    for (const Tensor& t : row) {
      ColumnHeader h;
      h.at = at;
      h.defined = t.defined();
      if (h.defined) {
        h.dtype = t.dtype();
        h.text = is_text(t);
        h.rank = static_cast<std::int32_t>(t.shape().rank());
        for (int d = 0; d < h.rank; ++d) h.extents[static_cast<std::size_t>(d)] = t.shape(d);
        at = aligned(at + t.nbytes());
      }
      each(t, h, headers + index++ * sizeof(ColumnHeader));
    }
  return at;
}

class Reader {
 public:
  explicit Reader(const std::byte* from) : from_(from) {
    MessageHeader head;
    std::memcpy(&head, from, sizeof head);
    rows_ = head.rows;
  }
  std::size_t rows() const { return rows_; }
  std::size_t columns(std::size_t row) const {
    std::uint64_t n;
    std::memcpy(&n, from_ + sizeof(MessageHeader) + row * sizeof n, sizeof n);
    return n;
  }
  /// In their order, over all rows.
  ColumnHeader next() {
    ColumnHeader h;
    std::memcpy(&h, from_ + sizeof(MessageHeader) + rows_ * sizeof(std::uint64_t) + at_++ * sizeof h, sizeof h);
    return h;
  }
  const std::byte* values(const ColumnHeader& h) const { return from_ + h.at; }

 private:
  const std::byte* from_;
  std::size_t rows_ = 0, at_ = 0;
};

Tensor copy(const Reader& reader, const ColumnHeader& h) {
  if (!h.defined) return {};
  Tensor t = tensor_for(h.spec());
  if (t.nbytes()) std::memcpy(t.data(), reader.values(h), t.nbytes());
  return t;
}

class SharedColumn final : public Pending {
 public:
  SharedColumn(const ColumnHeader& header, const std::byte* values, std::shared_ptr<void> lease)
      : spec_(header.spec()), values_(values), lease_(std::move(lease)) {}
  DType dtype() const override { return spec_.dtype; }
  Shape shape() const override { return spec_.shape; }
  void write(std::byte* to) override {
    if (const std::size_t bytes = spec_.bytes()) std::memcpy(to, values_, bytes);
    lease_.reset();
  }

 private:
  ColumnSpec spec_;
  const std::byte* values_;
  std::shared_ptr<void> lease_;
};

}  // namespace

std::size_t packed_size(std::span<const Row> rows) {
  return lay_out(rows, [](const Tensor&, const ColumnHeader&, std::size_t) {});
}

void pack(std::span<const Row> rows, std::byte* to) {
  const MessageHeader head{rows.size()};
  std::memcpy(to, &head, sizeof head);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::uint64_t n = rows[r].size();
    std::memcpy(to + sizeof head + r * sizeof n, &n, sizeof n);
  }
  lay_out(rows, [&](const Tensor& t, const ColumnHeader& h, std::size_t at) {
    std::memcpy(to + at, &h, sizeof h);
    if (h.defined && t.nbytes()) std::memcpy(to + h.at, t.data(), t.nbytes());
  });
}

std::vector<Row> unpack(const std::byte* from) {
  Reader reader(from);
  std::vector<Row> rows(reader.rows());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].resize(reader.columns(r));
    for (Tensor& t : rows[r]) t = copy(reader, reader.next());
  }
  return rows;
}

void unpack(const std::byte* from, const std::shared_ptr<void>& lease, LazyRow& out) {
  Reader reader(from);
  UNDERTOW_ASSERT(reader.rows() == 1);
  const std::size_t columns = reader.columns(0);
  constexpr std::size_t kLeaveFrom = 4096;  // bytes from which a second copy costs more than the bookkeeping
  out.set(Row(columns));
  for (std::size_t c = 0; c < columns; ++c) {
    const ColumnHeader h = reader.next();
    if (!out.fuse() || h.text || !h.defined || h.spec().bytes() < kLeaveFrom) out.set(c, copy(reader, h));
    else out.set(c, std::make_unique<SharedColumn>(h, reader.values(h), lease));
  }
}

}  // namespace undertow::data
