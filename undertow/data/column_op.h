// SPDX-License-Identifier: Apache-2.0
// data/column_op.h: map operations from plain functions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "undertow/base/check.h"
#include "undertow/data/lazy.h"

namespace undertow::data {

using ColumnFn = std::function<Tensor(const Tensor&)>;
using RandomFn = std::function<Tensor(const Tensor&, PhiloxStream&)>;
using RowFn = std::function<Row(const Row&, const RowContext&)>;
using LazyFn = std::function<void(LazyRow&, const RowContext&)>;

/// Throws DataError, which names the operation, where `x` is a column of texts: their characters are no numbers.
void check_numbers(const std::string& op, const Tensor& x);

/// `f` of the first column; given several columns, of each of them. Refuses texts.
std::shared_ptr<MapOp> column_op(std::string name, ColumnFn f);
/// As column_op, with random draws. Every column sees the same draws: an image and its mask are cropped alike.
std::shared_ptr<MapOp> random_op(std::string name, RandomFn f);
/// `f` of the whole row; `arity` as MapOp::arity. `inside`: the operations that f calls.
std::shared_ptr<MapOp> row_op(std::string name, int arity, RowFn f, std::vector<std::shared_ptr<MapOp>> inside = {});
/// The same in place, for operations that need not have their columns made (see lazy.h).
std::shared_ptr<MapOp> lazy_op(std::string name, int arity, LazyFn f, std::vector<std::shared_ptr<MapOp>> inside = {});
/// One after the other. Draws of operation i do not depend on the others. Throws ValueError for an empty list.
std::shared_ptr<MapOp> chain(std::string name, std::vector<std::shared_ptr<MapOp>> ops);
/// The context of the i-th operation within another one: other draws at every place of every depth.
inline RowContext inner(RowContext c, std::size_t i) {
  if (i > 0) c.op = (c.op + static_cast<std::uint32_t>(i) * 0x85EBCA6Bu) * 0x9E3779B1u;
  return c;
}

/// Part `i` of the first dimension, without copying.
Tensor part(const Tensor& x, std::int64_t i);
/// Tensors of one shape and dtype as one with a new first dimension.
Tensor stack(const std::vector<Tensor>& parts);

}  // namespace undertow::data
