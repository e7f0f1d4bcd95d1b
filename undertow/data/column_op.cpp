// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/column_op.h"

#include <algorithm>
#include <cstring>

#include "undertow/data/config.h"
#include "undertow/data/strings.h"

namespace undertow::data {
namespace {

/// A function, and the operations that it may call: it waits and is ordered and nice as they are.
class FunctionOp : public MapOp {
 public:
  FunctionOp(std::string name, int arity, std::vector<std::shared_ptr<MapOp>> inside)
      : name_(std::move(name)), arity_(arity), inside_(std::move(inside)) {}
  std::string name() const override { return name_; }
  int arity() const override { return arity_; }
  bool thread_safe() const override { return std::ranges::all_of(inside_, &MapOp::thread_safe, get); }
  bool ordered() const override { return std::ranges::any_of(inside_, &MapOp::ordered, get); }
  bool waits() const override { return std::ranges::any_of(inside_, &MapOp::waits, get); }
  int nice() const override {
    int least = 19;
    for (const auto& op : inside_) least = std::min(least, op->nice());
    return least;
  }
  std::shared_ptr<void> prepare(int workers) override {
    std::vector<std::shared_ptr<void>> all;
    for (const auto& op : inside_)
      if (auto kept = op->prepare(workers)) all.push_back(std::move(kept));
    return all.empty() ? nullptr : std::make_shared<decltype(all)>(std::move(all));
  }

 protected:
  void check_columns(std::size_t n) const { UNDERTOW_CHECK(n > 0, DataError, "{} takes a column, got none", name_); }

 private:
  static MapOp* get(const std::shared_ptr<MapOp>& op) { return op.get(); }
  std::string name_;
  int arity_;
  std::vector<std::shared_ptr<MapOp>> inside_;
};

class RowOp final : public FunctionOp {
 public:
  RowOp(std::string name, int arity, RowFn f, std::vector<std::shared_ptr<MapOp>> inside)
      : FunctionOp(std::move(name), arity, std::move(inside)), f_(std::move(f)) {}
  Row operator()(const Row& in, const RowContext& context) override {
    check_columns(in.size());
    return f_(in, context);
  }

 private:
  RowFn f_;
};

class LazyOp final : public FunctionOp {
 public:
  LazyOp(std::string name, int arity, LazyFn f, std::vector<std::shared_ptr<MapOp>> inside)
      : FunctionOp(std::move(name), arity, std::move(inside)), f_(std::move(f)) {}
  Row operator()(const Row& in, const RowContext& context) override {
    LazyRow row(in, config().fuse);
    extend(row, context);
    return std::move(row.finish());
  }
  void extend(LazyRow& row, const RowContext& context) override {
    check_columns(row.size());
    f_(row, context);
  }

 private:
  LazyFn f_;
};

}  // namespace

void check_numbers(const std::string& op, const Tensor& x) {
  UNDERTOW_CHECK(!is_text(x), DataError, "{} takes numbers, got texts of shape {}", op, text_shape(x).str());
}

std::shared_ptr<MapOp> column_op(std::string name, ColumnFn f) {
  return std::make_shared<RowOp>(
      name, 1,
      [name, f = std::move(f)](const Row& in, const RowContext&) {
        Row out;
        for (const Tensor& x : in) {
          check_numbers(name, x);
          out.push_back(f(x));
        }
        return out;
      },
      std::vector<std::shared_ptr<MapOp>>{});
}

std::shared_ptr<MapOp> random_op(std::string name, RandomFn f) {
  return std::make_shared<RowOp>(
      name, 1,
      [name, f = std::move(f)](const Row& in, const RowContext& c) {
        Row out;
        for (const Tensor& x : in) {
          check_numbers(name, x);
          PhiloxStream random = c.random();
          out.push_back(f(x, random));
        }
        return out;
      },
      std::vector<std::shared_ptr<MapOp>>{});
}

std::shared_ptr<MapOp> row_op(std::string name, int arity, RowFn f, std::vector<std::shared_ptr<MapOp>> inside) {
  return std::make_shared<RowOp>(std::move(name), arity, std::move(f), std::move(inside));
}

std::shared_ptr<MapOp> lazy_op(std::string name, int arity, LazyFn f, std::vector<std::shared_ptr<MapOp>> inside) {
  return std::make_shared<LazyOp>(std::move(name), arity, std::move(f), std::move(inside));
}

void MapOp::extend(LazyRow& row, const RowContext& context) { row.set((*this)(row.finish(), context)); }

std::shared_ptr<MapOp> chain(std::string name, std::vector<std::shared_ptr<MapOp>> ops) {
  UNDERTOW_CHECK(!ops.empty(), ValueError, "{}: the list of operations is empty", name);
  if (ops.size() == 1) return ops.front();
  const int arity = ops.front()->arity();
  return lazy_op(
      std::move(name), arity,
      [ops](LazyRow& row, const RowContext& context) {
        for (std::size_t i = 0; i < ops.size(); ++i) extend(*ops[i], row, inner(context, i));
      },
      ops);
}

Tensor part(const Tensor& x, std::int64_t i) {
  Shape shape;
  for (int d = 1; d < x.ndim(); ++d) shape.push_back(x.shape(d));
  const Tensor whole = x.view(x.shape());  // an impl of its own over the same storage
  whole.impl()->offset += static_cast<std::size_t>(i * shape.numel()) * size_of(x.dtype());
  whole.impl()->shape = shape;
  return whole;
}

Tensor stack(const std::vector<Tensor>& parts) {
  Shape shape{static_cast<std::int64_t>(parts.size())};
  for (const auto extent : parts.front().shape()) shape.push_back(extent);
  Tensor out(parts.front().dtype(), shape);
  auto* to = static_cast<std::byte*>(out.data());
  for (const Tensor& p : parts) {
    if (p.nbytes()) std::memcpy(to, p.data(), p.nbytes());
    to += p.nbytes();
  }
  return out;
}

}  // namespace undertow::data
