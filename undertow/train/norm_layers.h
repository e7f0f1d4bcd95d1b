// SPDX-License-Identifier: Apache-2.0
// train/norm_layers.h: normalisations. Scale and shift are the parameters gamma and beta; with affine=false they are
// not trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "undertow/train/cell.h"
#include "undertow/train/function_cell.h"
#include "undertow/train/initializer.h"

namespace undertow::nn {

using common::Init;

// ---- batch normalisation
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
/// Normalises each channel by the biased batch variance; moving_variance takes the unbiased one. Parameters:
/// moving_mean, moving_variance (without gradient), gamma, beta. The input may have any of `ranks` dimensions.
class BatchNormCell : public Cell {
 public:
  BatchNormCell(const char* cls, std::int64_t num_features, std::vector<int> ranks, const BatchNormOptions& options);
  Tensor construct(const Tensor& x) override;
  std::int64_t num_features() const { return features_; }
  const BatchNormOptions& options() const { return options_; }

 private:
  std::int64_t features_;
  std::vector<int> ranks_;
  BatchNormOptions options_;
};
/// x (N, C) or (N, C, L)
class BatchNorm1dCell : public BatchNormCell {
 public:
  explicit BatchNorm1dCell(std::int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormCell("BatchNorm1d", num_features, {2, 3}, options) {}
  std::string cls_name() const override { return "BatchNorm1d"; }
};
/// x (N, C, H, W)
class BatchNorm2dCell : public BatchNormCell {
 public:
  explicit BatchNorm2dCell(std::int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormCell("BatchNorm2d", num_features, {4}, options) {}
  std::string cls_name() const override { return "BatchNorm2d"; }
};
/// x (N, C) or (N, C, H, W). One process has nobody to synchronise with: as BatchNorm2d.
class SyncBatchNormCell : public BatchNormCell {
 public:
  explicit SyncBatchNormCell(std::int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormCell("SyncBatchNorm", num_features, {2, 4}, options) {}
  std::string cls_name() const override { return "SyncBatchNorm"; }
};
/// x (N, C, D, H, W). Its parameters belong to a child `bn2d`, as in MindSpore's checkpoints.
class BatchNorm3dCell : public Cell {
 public:
  explicit BatchNorm3dCell(std::int64_t num_features, const BatchNormOptions& options = {});
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "BatchNorm3d"; }
  std::int64_t num_features() const { return features_; }

 private:
  std::int64_t features_;
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
using BatchNorm1d = BatchNormHandle<BatchNorm1dCell>;
using BatchNorm2d = BatchNormHandle<BatchNorm2dCell>;
using BatchNorm3d = BatchNormHandle<BatchNorm3dCell>;
using SyncBatchNorm = BatchNormHandle<SyncBatchNormCell>;

// ---- over the channels or the features of one sample
struct LayerNormOptions {
  std::int64_t begin_norm_axis = -1;    ///< mean and variance over the dimensions from here on
  std::int64_t begin_params_axis = -1;  ///< gamma and beta span the dimensions from here on
  Init gamma_init = "ones", beta_init = "zeros";
  double epsilon = 1e-7;
  DType dtype = DType::kFloat32;
};
/// Parameters gamma and beta of shape `normalized_shape`.
class LayerNormCell : public Cell {
 public:
  explicit LayerNormCell(const std::vector<std::int64_t>& normalized_shape, const LayerNormOptions& options = {});
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "LayerNorm"; }
  const LayerNormOptions& options() const { return options_; }

 private:
  Shape shape_;
  LayerNormOptions options_;
};
class LayerNorm : public Handle<LayerNormCell> {
 public:
  explicit LayerNorm(const std::vector<std::int64_t>& normalized_shape, const LayerNormOptions& options = {})
      : Handle(make_ref<LayerNormCell>(normalized_shape, options)) {}
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  Init gamma_init = "ones", beta_init = "zeros";
  DType dtype = DType::kFloat32;
};
/// x (N, C, ...). Parameters gamma, beta (C,).
class GroupNormCell : public Cell {
 public:
  GroupNormCell(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options = {});
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "GroupNorm"; }
  std::int64_t num_groups() const { return groups_; }
  std::int64_t num_channels() const { return channels_; }
  const GroupNormOptions& options() const { return options_; }

 private:
  std::int64_t groups_, channels_;
  GroupNormOptions options_;
};
class GroupNorm : public Handle<GroupNormCell> {
 public:
  GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options = {})
      : Handle(make_ref<GroupNormCell>(num_groups, num_channels, options)) {}
};

struct InstanceNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  ///< of the moving statistics, which are kept for checkpoints and never used
  bool affine = true;
  Init gamma_init = "ones", beta_init = "zeros";
  DType dtype = DType::kFloat32;
};
/// Each channel of each sample by its own statistics, in training and evaluation. Parameters: moving_mean,
/// moving_variance, gamma, beta (C,).
class InstanceNormCell : public Cell {
 public:
  InstanceNormCell(const char* cls, std::int64_t num_features, int rank, const InstanceNormOptions& options);
  Tensor construct(const Tensor& x) override;
  std::int64_t num_features() const { return features_; }
  const InstanceNormOptions& options() const { return options_; }

 private:
  std::int64_t features_;
  int rank_;
  InstanceNormOptions options_;
};
template <int Spatial>
class InstanceNormOf : public InstanceNormCell {
 public:
  explicit InstanceNormOf(std::int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormCell(kName, num_features, Spatial + 2, options) {}
  std::string cls_name() const override { return kName; }

 private:
  static constexpr const char* kName = Spatial == 1   ? "InstanceNorm1d"
                                       : Spatial == 2 ? "InstanceNorm2d"
                                                      : "InstanceNorm3d";
};
template <int Spatial>
class InstanceNormHandle : public Handle<InstanceNormOf<Spatial>> {
 public:
  explicit InstanceNormHandle(std::int64_t num_features, const InstanceNormOptions& options = {})
      : Handle<InstanceNormOf<Spatial>>(make_ref<InstanceNormOf<Spatial>>(num_features, options)) {}
};
using InstanceNorm1d = InstanceNormHandle<1>;
using InstanceNorm2d = InstanceNormHandle<2>;
using InstanceNorm3d = InstanceNormHandle<3>;

// ---- without parameters
namespace fn {
struct LRN {
  static constexpr const char* kName = "LRN";
  std::int64_t depth_radius = 5;
  double bias = 1.0, alpha = 1.0, beta = 0.5;
  std::string norm_region = "ACROSS_CHANNELS";
  void check() const;
  Tensor operator()(const Tensor& x) const;
};
/// The Euclidean norm over the axes (all when empty).
struct Norm {
  static constexpr const char* kName = "Norm";
  std::vector<std::int64_t> axis;
  bool keep_dims = false;
  Tensor operator()(const Tensor& x) const;
};
}  // namespace fn
using LRN = FunctionHandle<fn::LRN>;
using Norm = FunctionHandle<fn::Norm>;

}  // namespace undertow::nn
