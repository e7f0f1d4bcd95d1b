// SPDX-License-Identifier: Apache-2.0
// train/layers.h: the layers. `Dense` is the handle that users hold, `DenseCell` the cell behind it; so for all of
// them.
//
// Parameters carry MindSpore's names, so that checkpoints of one load into the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "undertow/train/cell.h"
#include "undertow/train/initializer.h"

namespace undertow::nn {

using common::Init;

/// A height and a width; one number stands for both.
struct IntPair {
  std::int64_t h, w;
  IntPair(std::int64_t both) : h(both), w(both) {}
  IntPair(std::int64_t h, std::int64_t w) : h(h), w(w) {}
};
/// Padding on the four sides; one number stands for all.
struct Padding {
  std::int64_t top, bottom, left, right;
  Padding(std::int64_t all) : top(all), bottom(all), left(all), right(all) {}
  Padding(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right)
      : top(top), bottom(bottom), left(left), right(right) {}
  bool none() const { return !top && !bottom && !left && !right; }
};

/// An activation by name ("relu", "sigmoid", "tanh", "softmax") or as a cell.
struct Activation {
  Ref<Cell> cell;
  Activation() = default;
  Activation(const char* name) : Activation(std::string(name)) {}
  /// Throws ValueError naming the known names.
  Activation(const std::string& name);
  Activation(Ref<Cell> c) : cell(std::move(c)) {}
  template <typename T>
  Activation(const Handle<T>& h) : cell(h.ref()) {}
};

// ---- Dense
struct DenseOptions {
  Init weight_init;  ///< default: HeUniform(sqrt(5))
  Init bias_init;    ///< default: U(-1/sqrt(in), 1/sqrt(in))
  bool has_bias = true;
  Activation activation;
  DType dtype = DType::kFloat32;
};
/// y = activation(x W^T + b) over the last dimension. Parameters: weight [out, in], bias [out].
class DenseCell : public Cell {
 public:
  DenseCell(std::int64_t in_channels, std::int64_t out_channels, const DenseOptions& options = {});
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "Dense"; }
  std::int64_t in_channels() const { return in_; }
  std::int64_t out_channels() const { return out_; }

 private:
  std::int64_t in_, out_;
};
class Dense : public Handle<DenseCell> {
 public:
  Dense(std::int64_t in_channels, std::int64_t out_channels, const DenseOptions& options = {})
      : Handle(make_ref<DenseCell>(in_channels, out_channels, options)) {}
  Parameter weight() const { return ref()->get_param("weight"); }
  Parameter bias() const { return ref()->get_param("bias"); }
};

// ---- Conv2d
struct Conv2dOptions {
  IntPair stride = 1;
  std::string pad_mode = "same";  ///< "same", "valid" or "pad"
  Padding padding = 0;            ///< only with "pad"
  IntPair dilation = 1;
  std::int64_t group = 1;
  bool has_bias = false;
  Init weight_init;  ///< default: HeUniform(sqrt(5))
  Init bias_init;    ///< default: U(-1/sqrt(fan_in), 1/sqrt(fan_in))
  std::string data_format = "NCHW";
  DType dtype = DType::kFloat32;
};
/// x [N, C, H, W]. Parameters: weight [out, in/group, kh, kw], bias [out].
class Conv2dCell : public Cell {
 public:
  Conv2dCell(std::int64_t in_channels, std::int64_t out_channels, IntPair kernel_size,
             const Conv2dOptions& options = {});
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "Conv2d"; }
  std::int64_t in_channels() const { return in_; }
  std::int64_t out_channels() const { return out_; }

 private:
  std::int64_t in_, out_;
  IntPair kernel_;
  Conv2dOptions options_;
};
class Conv2d : public Handle<Conv2dCell> {
 public:
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, IntPair kernel_size, const Conv2dOptions& options = {})
      : Handle(make_ref<Conv2dCell>(in_channels, out_channels, kernel_size, options)) {}
  Parameter weight() const { return ref()->get_param("weight"); }
  Parameter bias() const { return ref()->get_param("bias"); }
};

// ---- BatchNorm
struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.9;  ///< moving = momentum * moving + (1 - momentum) * batch
  bool affine = true;
  Init gamma_init = "ones", beta_init = "zeros";
  Init moving_mean_init = "zeros", moving_var_init = "ones";
  std::optional<bool> use_batch_statistics;  ///< default: in training
  std::string data_format = "NCHW";
  DType dtype = DType::kFloat32;
};
/// Normalises by the biased batch variance; moving_variance takes the unbiased one. Parameters: gamma, beta,
/// moving_mean, moving_variance (the last two without gradient).
class BatchNormCell : public Cell {
 public:
  BatchNormCell(std::int64_t num_features, int rank, const BatchNormOptions& options);
  Tensor construct(const Tensor& x) override;
  std::int64_t num_features() const { return features_; }

 private:
  std::int64_t features_;
  int rank_;
  BatchNormOptions options_;
};
/// x [N, C]
class BatchNorm1dCell : public BatchNormCell {
 public:
  explicit BatchNorm1dCell(std::int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormCell(num_features, 2, options) {}
  std::string cls_name() const override { return "BatchNorm1d"; }
};
/// x [N, C, H, W]
class BatchNorm2dCell : public BatchNormCell {
 public:
  explicit BatchNorm2dCell(std::int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormCell(num_features, 4, options) {}
  std::string cls_name() const override { return "BatchNorm2d"; }
};
template <typename C>
class BatchNormHandle : public Handle<C> {
 public:
  explicit BatchNormHandle(std::int64_t num_features, const BatchNormOptions& options = {})
      : Handle<C>(make_ref<C>(num_features, options)) {}
  Parameter gamma() const { return this->ref()->get_param("gamma"); }
  Parameter beta() const { return this->ref()->get_param("beta"); }
  Parameter moving_mean() const { return this->ref()->get_param("moving_mean"); }
  Parameter moving_variance() const { return this->ref()->get_param("moving_variance"); }
};
class BatchNorm1d : public BatchNormHandle<BatchNorm1dCell> {
 public:
  using BatchNormHandle::BatchNormHandle;
};
class BatchNorm2d : public BatchNormHandle<BatchNorm2dCell> {
 public:
  using BatchNormHandle::BatchNormHandle;
};

// ---- pooling
struct MaxPool2dOptions {
  IntPair kernel_size = 1, stride = 1;
  std::string pad_mode = "valid";  ///< "same", "valid" or "pad"
  Padding padding = 0;             ///< only with "pad"; at most half the kernel
  std::string data_format = "NCHW";
};
struct AvgPool2dOptions {
  IntPair kernel_size = 1, stride = 1;
  std::string pad_mode = "valid";
  Padding padding = 0;
  bool count_include_pad = true;  ///< with "pad"; "same" never counts its padding
  std::string data_format = "NCHW";
};
class MaxPool2dCell : public Cell {
 public:
  explicit MaxPool2dCell(const MaxPool2dOptions& options = {});
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "MaxPool2d"; }

 private:
  MaxPool2dOptions options_;
};
class AvgPool2dCell : public Cell {
 public:
  explicit AvgPool2dCell(const AvgPool2dOptions& options = {});
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "AvgPool2d"; }

 private:
  AvgPool2dOptions options_;
};
class MaxPool2d : public Handle<MaxPool2dCell> {
 public:
  explicit MaxPool2d(const MaxPool2dOptions& options = {}) : Handle(make_ref<MaxPool2dCell>(options)) {}
};
class AvgPool2d : public Handle<AvgPool2dCell> {
 public:
  explicit AvgPool2d(const AvgPool2dOptions& options = {}) : Handle(make_ref<AvgPool2dCell>(options)) {}
};

// ---- without parameters
class ReLUCell : public Cell {
 public:
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "ReLU"; }
};
class SigmoidCell : public Cell {
 public:
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "Sigmoid"; }
};
class TanhCell : public Cell {
 public:
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "Tanh"; }
};
class SoftmaxCell : public Cell {
 public:
  explicit SoftmaxCell(std::int64_t axis = -1) : axis_(axis) {}
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "Softmax"; }

 private:
  std::int64_t axis_;
};
class FlattenCell : public Cell {
 public:
  explicit FlattenCell(std::int64_t start_dim = 1, std::int64_t end_dim = -1) : start_(start_dim), end_(end_dim) {}
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "Flatten"; }

 private:
  std::int64_t start_, end_;
};
struct DropoutOptions {
  double keep_prob = 0.5;
  std::optional<double> p;  ///< probability of a zero; takes precedence over keep_prob
};
/// In training only; what is kept is scaled by 1 / (1 - p).
class DropoutCell : public Cell {
 public:
  explicit DropoutCell(const DropoutOptions& options = {});
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "Dropout"; }
  double p() const { return p_; }

 private:
  double p_;
};
class ReLU : public Handle<ReLUCell> {
 public:
  ReLU() : Handle(make_ref<ReLUCell>()) {}
};
class Sigmoid : public Handle<SigmoidCell> {
 public:
  Sigmoid() : Handle(make_ref<SigmoidCell>()) {}
};
class Tanh : public Handle<TanhCell> {
 public:
  Tanh() : Handle(make_ref<TanhCell>()) {}
};
class Softmax : public Handle<SoftmaxCell> {
 public:
  explicit Softmax(std::int64_t axis = -1) : Handle(make_ref<SoftmaxCell>(axis)) {}
};
class Flatten : public Handle<FlattenCell> {
 public:
  explicit Flatten(std::int64_t start_dim = 1, std::int64_t end_dim = -1)
      : Handle(make_ref<FlattenCell>(start_dim, end_dim)) {}
};
class Dropout : public Handle<DropoutCell> {
 public:
  explicit Dropout(const DropoutOptions& options = {}) : Handle(make_ref<DropoutCell>(options)) {}
};

// ---- containers
/// Cells called one after the other; named "0", "1", ...
class SequentialCellImpl : public Cell {
 public:
  explicit SequentialCellImpl(const std::vector<Ref<Cell>>& cells = {});
  void append(Ref<Cell> cell) { insert_child(std::to_string(children().size()), std::move(cell)); }
  /// Negative counts from the end. Throws IndexError.
  Ref<Cell> at(std::int64_t index) const;
  std::int64_t size() const { return static_cast<std::int64_t>(children().size()); }
  Value construct_values(const std::vector<Value>& args) override;
  std::string cls_name() const override { return "SequentialCell"; }
};
/// Cells held by number; each is called by the user.
class CellListImpl : public Cell {
 public:
  explicit CellListImpl(const std::vector<Ref<Cell>>& cells = {});
  void append(Ref<Cell> cell) { insert_child(std::to_string(children().size()), std::move(cell)); }
  Ref<Cell> at(std::int64_t index) const;
  std::int64_t size() const { return static_cast<std::int64_t>(children().size()); }
  std::string cls_name() const override { return "CellList"; }
};
template <typename T>
concept CellLike = std::is_convertible_v<T, Ref<Cell>>;
class SequentialCell : public Handle<SequentialCellImpl> {
 public:
  SequentialCell() : Handle(make_ref<SequentialCellImpl>()) {}
  explicit SequentialCell(const std::vector<Ref<Cell>>& cells) : Handle(make_ref<SequentialCellImpl>(cells)) {}
  /// SequentialCell(Dense(8, 4), ReLU(), Dense(4, 1))
  template <CellLike First, CellLike... Rest>
    requires(!std::is_same_v<std::decay_t<First>, SequentialCell> || sizeof...(Rest) > 0)
  explicit SequentialCell(const First& first, const Rest&... rest)
      : SequentialCell(std::vector<Ref<Cell>>{Ref<Cell>(first), Ref<Cell>(rest)...}) {}
  void append(const Ref<Cell>& cell) const { ref()->append(cell); }
  std::int64_t size() const { return ref()->size(); }
  Ref<Cell> operator[](std::int64_t i) const { return ref()->at(i); }
};
class CellList : public Handle<CellListImpl> {
 public:
  CellList() : Handle(make_ref<CellListImpl>()) {}
  explicit CellList(const std::vector<Ref<Cell>>& cells) : Handle(make_ref<CellListImpl>(cells)) {}
  void append(const Ref<Cell>& cell) const { ref()->append(cell); }
  std::int64_t size() const { return ref()->size(); }
  Ref<Cell> operator[](std::int64_t i) const { return ref()->at(i); }
};

}  // namespace undertow::nn
