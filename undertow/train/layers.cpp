// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/layers.h"

#include <cmath>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace {

void require_positive(const char* cls, const char* argument, std::int64_t value) {
  UNDERTOW_CHECK(value > 0, ValueError, "{}: '{}' must be a positive number but is {}", cls, argument, value);
}

}  // namespace

Activation::Activation(const std::string& name) {
  if (name == "relu") cell = make_ref<ReLUCell>();
  else if (name == "sigmoid") cell = make_ref<SigmoidCell>();
  else if (name == "tanh") cell = make_ref<TanhCell>();
  else if (name == "softmax") cell = make_ref<SoftmaxCell>();
  else if (!name.empty())
    throw ValueError(fmt::format("activation '{}' is not known; use relu, sigmoid, tanh, softmax or a Cell", name));
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
      "{}: the last dimension of the input must be in_channels = {}, but the input has shape {} and the weight {}",
      where(), in_, x.shape().str(), get_param("weight").shape().str());
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

// ---- BatchNorm
BatchNormCell::BatchNormCell(std::int64_t num_features, int rank, const BatchNormOptions& o)
    : features_(num_features), rank_(rank), options_(o) {
  const char* cls = rank == 2 ? "BatchNorm1d" : "BatchNorm2d";
  UNDERTOW_CHECK(features_ >= 1, ValueError, "{}: 'num_features' must be at least 1 but is {}", cls, features_);
  UNDERTOW_CHECK(o.momentum >= 0 && o.momentum <= 1, ValueError, "{}: 'momentum' must be from 0 to 1 but is {}", cls,
                 o.momentum);
  UNDERTOW_CHECK(o.data_format == "NCHW", ValueError, "{}: data_format '{}' is not supported; use NCHW", cls,
                 o.data_format);
  const Shape shape{features_};
  const auto make = [&](const Init& init, const char* name, bool trains) {
    return Parameter(common::initializer(init, shape, o.dtype), name, trains);
  };
  insert_param("moving_mean", make(o.moving_mean_init, "mean", false));
  insert_param("moving_variance", make(o.moving_var_init, "variance", false));
  insert_param("gamma", make(o.gamma_init, "gamma", o.affine));
  insert_param("beta", make(o.beta_init, "beta", o.affine));
}

Tensor BatchNormCell::construct(const Tensor& x) {
  UNDERTOW_CHECK(
      x.ndim() == rank_ && x.shape(1) == features_, ShapeError,
      "{}: expected an input of {} dimensions with num_features = {} channels, but the input has shape {} and "
      "gamma {}",
      where(), rank_, features_, x.shape().str(), get_param("gamma").shape().str());
  const Parameter moving_mean = get_param("moving_mean"), moving_variance = get_param("moving_variance");
  std::vector<std::int64_t> per_channel(static_cast<std::size_t>(rank_), 1);
  per_channel[1] = features_;
  const auto spread = [&](const Tensor& t) { return rank_ == 2 ? t : ops::reshape(t, per_channel); };

  Tensor centred, variance;
  if (options_.use_batch_statistics.value_or(training())) {
    const std::int64_t n = x.size() / features_;
    UNDERTOW_CHECK(n > 1, ValueError,
                   "{}: training needs more than one value per channel, but the input of shape {} has {}; use larger "
                   "batches, or drop_remainder=True where the last batch of a dataset is short",
                   where(), x.shape().str(), n);
    const ops::Axes axes = rank_ == 2 ? ops::Axes{0} : ops::Axes{0, 2, 3};
    const Tensor wide = ops::cast(x, compute_type(x.dtype()));
    const Tensor mean = ops::reduce_mean(wide, axes);
    centred = ops::sub(wide, spread(mean));
    variance = ops::reduce_mean(ops::square(centred), axes);
    const double keep = options_.momentum, unbias = static_cast<double>(n) / static_cast<double>(n - 1);
    ops::assign(moving_mean, moving_mean * keep + mean * (1.0 - keep));
    ops::assign(moving_variance, moving_variance * keep + variance * ((1.0 - keep) * unbias));
  } else {
    centred = ops::sub(x, spread(moving_mean));
    variance = moving_variance;
  }
  const Tensor scale = ops::mul(get_param("gamma"), ops::rsqrt(ops::add(variance, options_.eps)));
  return ops::cast(ops::add(ops::mul(centred, spread(scale)), spread(get_param("beta"))), x.dtype());
}

// ---- without parameters
Tensor ReLUCell::construct(const Tensor& x) { return ops::relu(x); }
Tensor SigmoidCell::construct(const Tensor& x) { return ops::sigmoid(x); }
Tensor TanhCell::construct(const Tensor& x) { return ops::tanh(x); }
Tensor SoftmaxCell::construct(const Tensor& x) { return ops::softmax(x, axis_); }

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
