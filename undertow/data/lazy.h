// SPDX-License-Identifier: Apache-2.0
// data/lazy.h: rows whose columns may still have to be made, so that operations one after the other become one pass.
//
// An operation that can says what is to be done (MapOp::extend); the work itself happens once, when the values are
// needed, and where they are needed: in the consumer's memory.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "undertow/data/source.h"

namespace undertow::data {

/// A column that is not made yet.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual DType dtype() const = 0;
  virtual Shape shape() const = 0;
  /// Writes the values, dense. Called once, as is take().
  virtual void write(std::byte* to) = 0;
  virtual Tensor take() {
    Tensor t(dtype(), shape());
    write(static_cast<std::byte*>(t.data()));
    return t;
  }
};

class LazyRow {
 public:
  /// Without `fuse` nothing stays pending from one operation to the next.
  explicit LazyRow(Row row, bool fuse) : row_(std::move(row)), fuse_(fuse) {}

  std::size_t size() const { return row_.size(); }
  bool fuse() const { return fuse_; }
  /// Null where the column is there.
  Pending* pending(std::size_t c) const { return pending_.empty() ? nullptr : pending_[c].get(); }
  void set(std::size_t c, std::unique_ptr<Pending> pending) {
    if (pending_.empty()) pending_.resize(row_.size());
    row_[c] = Tensor();
    pending_[c] = std::move(pending);
  }
  void set(std::size_t c, Tensor column) {
    if (!pending_.empty()) pending_[c].reset();
    row_[c] = std::move(column);
  }
  void set(Row row) {
    row_ = std::move(row);
    pending_.clear();
  }
  /// The column, which is made now where it is not there.
  const Tensor& column(std::size_t c) {
    if (Pending* p = pending(c)) set(c, p->take());
    return row_[c];
  }
  /// The row, to be filled anew.
  Row& refill(bool fuse) {
    fuse_ = fuse;
    pending_.clear();
    row_.clear();
    return row_;
  }
  const Tensor& made(std::size_t c) const { return row_[c]; }  ///< only where nothing is pending
  DType dtype(std::size_t c) const { return pending(c) ? pending(c)->dtype() : row_[c].dtype(); }
  Shape shape(std::size_t c) const { return pending(c) ? pending(c)->shape() : row_[c].shape(); }
  /// The values of column `c`, dense; the column is of no use any more.
  void write(std::size_t c, std::byte* to) {
    if (Pending* p = pending(c)) p->write(to);
    else if (const std::size_t bytes = row_[c].nbytes()) std::memcpy(to, row_[c].data(), bytes);
  }
  /// All columns, made.
  Row& finish() {
    for (std::size_t c = 0; c < pending_.size(); ++c) column(c);
    pending_.clear();
    return row_;
  }
  /// Column `c` of `from`, as it is, becomes column `to`.
  void move(std::size_t to, LazyRow& from, std::size_t c) {
    if (from.pending(c)) set(to, std::move(from.pending_[c]));
    else set(to, std::move(from.row_[c]));
  }
  /// Whether column `c` is defined or will be.
  bool has(std::size_t c) const { return pending(c) || row_[c].defined(); }

 private:
  Row row_;  // undefined where pending
  bool fuse_;
  std::vector<std::unique_ptr<Pending>> pending_;  // empty, or one a column
};

/// `op` on the whole row, as the row's `fuse` says.
inline void extend(MapOp& op, LazyRow& row, const RowContext& context) {
  op.extend(row, context);
  if (!row.fuse()) row.finish();
}

}  // namespace undertow::data
