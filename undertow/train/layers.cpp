// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/layers.h"

#include <cmath>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/train/padding_advice.h"

namespace undertow::nn {
namespace {

void require_positive(const char* cls, const char* argument, std::int64_t value) {
  UNDERTOW_CHECK(value > 0, ValueError, "{}: '{}' must be a positive number but is {}", cls, argument, value);
}

}  // namespace

Activation::Activation(const std::string& name) {
  try {
    cell = get_activation(name);
  } catch (const KeyError& e) {  // here it is an argument of another layer
    throw ValueError(e.what());
  }
}

// ---- Dense
DenseCell::DenseCell(std::int64_t in_channels, std::int64_t out_channels, const DenseOptions& o)
    : in_(in_channels), out_(out_channels) {
  require_positive("Dense", "in_channels", in_);
  require_positive("Dense", "out_channels", out_);
  const Init weight = o.weight_init.or_else(common::HeUniform(std::sqrt(5.0)));
  insert_param("weight", Parameter(common::initializer(weight, Shape{out_, in_}, o.dtype), "weight"));
  if (o.has_bias) {
    const Init bias = o.bias_init.or_else(common::Uniform(1.0 / std::sqrt(static_cast<double>(in_))));
    insert_param("bias", Parameter(common::initializer(bias, Shape{out_}, o.dtype), "bias"));
  }
  if (o.activation.cell) insert_child("activation", o.activation.cell);
}

Tensor DenseCell::construct(const Tensor& x) {
  UNDERTOW_CHECK(
      x.ndim() >= 1 && x.shape().back() == in_, ShapeError,
      "{}: the last dimension of the input must be in_channels = {}, but the input has shape {} and the weight {}{}",
      where(), in_, x.shape().str(), get_param("weight").shape().str(), train::padding_advice());
  std::vector<std::int64_t> shape = x.shape().to_vector();
  shape.back() = out_;
  Tensor rows = x;
  if (x.ndim() != 2) rows = ops::reshape(x, {x.size() / in_, in_});
  Tensor y = ops::matmul(rows, get_param("weight"), false, true);
  if (const Parameter bias = get_param("bias"); bias.defined()) y = ops::add(y, bias);
  if (x.ndim() != 2) y = ops::reshape(y, shape);
  if (const Ref<Cell> activation = get_child("activation")) y = (*activation)(y);
  return y;
}

// ---- without parameters
Tensor FlattenCell::construct(const Tensor& x) {
  UNDERTOW_CHECK(x.ndim() >= 1, ShapeError, "{}: the input needs at least one dimension; its shape is {}", where(),
                 x.shape().str());
  if (x.ndim() == 1 && start_ == 1 && end_ == -1) return ops::reshape(x, {x.shape(0), 1});
  return ops::flatten(x, start_, end_);
}

DropoutCell::DropoutCell(const DropoutOptions& o) : p_(o.p ? *o.p : 1.0 - o.keep_prob) {
  if (o.p) UNDERTOW_CHECK(*o.p >= 0 && *o.p < 1, ValueError, "Dropout: 'p' must be in [0, 1) but is {}", *o.p);
  else
    UNDERTOW_CHECK(o.keep_prob > 0 && o.keep_prob <= 1, ValueError, "Dropout: 'keep_prob' must be in (0, 1] but is {}",
                   o.keep_prob);
}

Tensor DropoutCell::construct(const Tensor& x) {
  if (!training() || p_ == 0) return x;
  return ops::dropout(x, p_);
}

// ---- containers
namespace {

Ref<Cell> child_at(const Cell& cell, std::int64_t index) {
  const auto n = static_cast<std::int64_t>(cell.children().size());
  const std::int64_t i = index < 0 ? index + n : index;
  UNDERTOW_CHECK(i >= 0 && i < n, IndexError, "{}: index {} is out of range for {} cells", cell.cls_name(), index, n);
  return cell.children()[static_cast<std::size_t>(i)].second;
}

}  // namespace

SequentialCellImpl::SequentialCellImpl(const std::vector<Ref<Cell>>& cells) {
  for (const Ref<Cell>& c : cells) append(c);
}
Ref<Cell> SequentialCellImpl::at(std::int64_t index) const { return child_at(*this, index); }

Value SequentialCellImpl::construct_values(const std::vector<Value>& args) {
  UNDERTOW_CHECK(!args.empty(), TypeError, "{} takes an input", where());
  std::vector<Value> values = args;
  for (const auto& [_, cell] : children()) values = {cell->call(values)};
  return values.front();
}

CellListImpl::CellListImpl(const std::vector<Ref<Cell>>& cells) {
  for (const Ref<Cell>& c : cells) append(c);
}
Ref<Cell> CellListImpl::at(std::int64_t index) const { return child_at(*this, index); }

}  // namespace undertow::nn
