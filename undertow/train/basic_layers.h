// SPDX-License-Identifier: Apache-2.0
// train/basic_layers.h: embeddings, bilinear layers, and cells without parameters around functions of ops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "undertow/train/extents.h"
#include "undertow/train/function_cell.h"
#include "undertow/train/initializer.h"

namespace undertow::nn {

using common::Init;

// ---- with parameters
struct EmbeddingOptions {
  bool use_one_hot = false;  ///< a matrix product with one-hot rows instead of a look-up; same result
  Init embedding_table = "normal";
  DType dtype = DType::kFloat32;
  std::optional<std::int64_t> padding_idx;  ///< that row starts as zeros
};
/// ids of any shape to (ids..., embedding_size). Parameter: embedding_table (vocab_size, embedding_size).
class EmbeddingCell : public Cell {
 public:
  EmbeddingCell(std::int64_t vocab_size, std::int64_t embedding_size, const EmbeddingOptions& options = {});
  Tensor construct(const Tensor& ids) override;
  std::string cls_name() const override { return "Embedding"; }
  std::int64_t vocab_size() const { return vocab_; }
  std::int64_t embedding_size() const { return size_; }
  const EmbeddingOptions& options() const { return options_; }

 private:
  std::int64_t vocab_, size_;
  EmbeddingOptions options_;
};
class Embedding : public Handle<EmbeddingCell> {
 public:
  Embedding(std::int64_t vocab_size, std::int64_t embedding_size, const EmbeddingOptions& options = {})
      : Handle(make_ref<EmbeddingCell>(vocab_size, embedding_size, options)) {}
  Parameter embedding_table() const { return ref()->get_param("embedding_table"); }
};

struct EmbeddingLookupOptions {
  Init param_init = "normal";
  std::optional<double> max_norm;  ///< rows are scaled down to this Euclidean norm
  DType dtype = DType::kFloat32;
};
class EmbeddingLookupCell : public Cell {
 public:
  EmbeddingLookupCell(std::int64_t vocab_size, std::int64_t embedding_size, const EmbeddingLookupOptions& options = {});
  Tensor construct(const Tensor& ids) override;
  std::string cls_name() const override { return "EmbeddingLookup"; }

 private:
  std::optional<double> max_norm_;
};

struct BiDenseOptions {
  Init weight_init, bias_init;  ///< default: U(-1/sqrt(in1), 1/sqrt(in1))
  bool has_bias = true;
  DType dtype = DType::kFloat32;
};
/// x1 (..., in1), x2 (..., in2) to x1 W x2 + b. Parameters: weight (out, in1, in2), bias (out,).
class BiDenseCell : public Cell {
 public:
  BiDenseCell(std::int64_t in1_channels, std::int64_t in2_channels, std::int64_t out_channels,
              const BiDenseOptions& options = {});
  Tensor construct(const Tensor& x1, const Tensor& x2) override;
  std::string cls_name() const override { return "BiDense"; }
};
class BiDense : public Handle<BiDenseCell> {
 public:
  BiDense(std::int64_t in1_channels, std::int64_t in2_channels, std::int64_t out_channels,
          const BiDenseOptions& options = {})
      : Handle(make_ref<BiDenseCell>(in1_channels, in2_channels, out_channels, options)) {}
};

// ---- without
namespace fn {

using Ints = std::vector<std::int64_t>;

struct Identity {
  static constexpr const char* kName = "Identity";
  Value operator()(const Value& x) const { return x; }
};

/// Zeroes whole channels in training. Dropout1d takes (N, C, L) or (C, L), the others (N, C, ...).
template <int N>
struct DropoutNd {
  static constexpr const char* kName = N == 1 ? "Dropout1d" : N == 2 ? "Dropout2d" : "Dropout3d";
  double p = 0.5;
  void check() const;
  Tensor operator()(bool training, const Tensor& x) const;
};

struct OneHot {
  static constexpr const char* kName = "OneHot";
  std::int64_t axis = -1, depth = 1;
  double on_value = 1.0, off_value = 0.0;
  DType dtype = DType::kFloat32;
  Tensor operator()(const Tensor& indices) const;
};

/// paddings: (low, high) of each dimension. mode "CONSTANT" (zeros), "REFLECT" or "SYMMETRIC".
struct Pad {
  static constexpr const char* kName = "Pad";
  std::vector<std::pair<std::int64_t, std::int64_t>> paddings;
  std::string mode = "CONSTANT";
  void check() const;
  Tensor operator()(const Tensor& x) const;
};
/// padding: one number for all sides of N dimensions, or pairs from the last dimension on. Negative numbers crop.
template <int N>
struct ConstantPad {
  static constexpr const char* kName = N == 1 ? "ConstantPad1d" : N == 2 ? "ConstantPad2d" : "ConstantPad3d";
  Ints padding;
  double value = 0;
  Tensor operator()(const Tensor& x) const;
};
struct ZeroPad2d {
  static constexpr const char* kName = "ZeroPad2d";
  Ints padding;
  Tensor operator()(const Tensor& x) const;
};
template <int N>
struct ReflectionPad {
  static constexpr const char* kName = N == 1 ? "ReflectionPad1d" : N == 2 ? "ReflectionPad2d" : "ReflectionPad3d";
  Ints padding;
  Tensor operator()(const Tensor& x) const;
};
template <int N>
struct ReplicationPad {
  static constexpr const char* kName = N == 1 ? "ReplicationPad1d" : N == 2 ? "ReplicationPad2d" : "ReplicationPad3d";
  Ints padding;
  Tensor operator()(const Tensor& x) const;
};

struct Upsample {
  static constexpr const char* kName = "Upsample";
  Ints size;
  std::vector<double> scale_factor;
  std::string mode = "nearest";
  std::optional<bool> align_corners, recompute_scale_factor;
  Tensor operator()(const Tensor& x) const;
};
struct ResizeBilinear {
  static constexpr const char* kName = "ResizeBilinear";
  static constexpr const char* kInputs[] = {"x", "size", "scale_factor", "align_corners"};
  bool half_pixel_centers = false;
  Tensor operator()(const Tensor& x, const std::optional<Value>& size, const std::optional<Value>& scale_factor,
                    const std::optional<bool>& align_corners) const;
};
struct PixelShuffle {
  static constexpr const char* kName = "PixelShuffle";
  std::int64_t upscale_factor = 1;
  Tensor operator()(const Tensor& x) const;
};
struct PixelUnshuffle {
  static constexpr const char* kName = "PixelUnshuffle";
  std::int64_t downscale_factor = 1;
  Tensor operator()(const Tensor& x) const;
};
struct ChannelShuffle {
  static constexpr const char* kName = "ChannelShuffle";
  std::int64_t groups = 1;
  Tensor operator()(const Tensor& x) const;
};
/// Windows of (N, C, H, W) as (N, kh kw C, oh, ow). Sizes as (1, row, column, 1).
struct Unfold {
  static constexpr const char* kName = "Unfold";
  Ints ksizes, strides, rates;
  std::string padding = "valid";  ///< "valid" or "same"
  void check() const;
  Tensor operator()(const Tensor& x) const;
};
struct Fold {
  static constexpr const char* kName = "Fold";
  Ints output_size, kernel_size, dilation{1}, padding{0}, stride{1};
  Tensor operator()(const Tensor& x) const;
};
struct Unflatten {
  static constexpr const char* kName = "Unflatten";
  std::int64_t axis = 1;
  Ints unflattened_size;
  Tensor operator()(const Tensor& x) const;
};
struct Roll {
  static constexpr const char* kName = "Roll";
  Ints shift, axis;
  void check() const;
  Tensor operator()(const Tensor& x) const;
};
struct Tril {
  static constexpr const char* kName = "Tril";
  Tensor operator()(const Tensor& x, const std::optional<std::int64_t>& k) const;
};
struct Triu {
  static constexpr const char* kName = "Triu";
  Tensor operator()(const Tensor& x, const std::optional<std::int64_t>& k) const;
};
struct CosineSimilarity {
  static constexpr const char* kName = "CosineSimilarity";
  std::int64_t dim = 1;
  double eps = 1e-8;
  Tensor operator()(const Tensor& x1, const Tensor& x2) const;
};
struct PairwiseDistance {
  static constexpr const char* kName = "PairwiseDistance";
  double p = 2.0, eps = 1e-6;
  bool keepdim = false;
  Tensor operator()(const Tensor& x1, const Tensor& x2) const;
};
struct MatMul {
  static constexpr const char* kName = "MatMul";
  bool transpose_x1 = false, transpose_x2 = false;
  Tensor operator()(const Tensor& x1, const Tensor& x2) const;
};
struct ReduceLogSumExp {
  static constexpr const char* kName = "ReduceLogSumExp";
  Ints axis;
  bool keep_dims = false;
  Tensor operator()(const Tensor& x) const;
};
/// Mean and variance over the axes.
struct Moments {
  static constexpr const char* kName = "Moments";
  Ints axis;
  std::optional<bool> keep_dims;
  std::pair<Tensor, Tensor> operator()(const Tensor& x) const;
};
struct ClipByNorm {
  static constexpr const char* kName = "ClipByNorm";
  Ints axis;
  Tensor operator()(const Tensor& x, const Value& clip_norm) const;
};
struct L1Regularizer {
  static constexpr const char* kName = "L1Regularizer";
  double scale = 0;
  void check() const;
  Tensor operator()(const Tensor& weights) const;
};

}  // namespace fn

using Identity = FunctionHandle<fn::Identity>;
using Dropout1d = FunctionHandle<fn::DropoutNd<1>>;
using Dropout2d = FunctionHandle<fn::DropoutNd<2>>;
using Dropout3d = FunctionHandle<fn::DropoutNd<3>>;
using OneHot = FunctionHandle<fn::OneHot>;
using Pad = FunctionHandle<fn::Pad>;
using ZeroPad2d = FunctionHandle<fn::ZeroPad2d>;
using ConstantPad2d = FunctionHandle<fn::ConstantPad<2>>;
using ReflectionPad2d = FunctionHandle<fn::ReflectionPad<2>>;
using ReplicationPad2d = FunctionHandle<fn::ReplicationPad<2>>;
using Upsample = FunctionHandle<fn::Upsample>;
using ResizeBilinear = FunctionHandle<fn::ResizeBilinear>;
using PixelShuffle = FunctionHandle<fn::PixelShuffle>;
using PixelUnshuffle = FunctionHandle<fn::PixelUnshuffle>;
using ChannelShuffle = FunctionHandle<fn::ChannelShuffle>;
using Unfold = FunctionHandle<fn::Unfold>;
using Fold = FunctionHandle<fn::Fold>;
using Unflatten = FunctionHandle<fn::Unflatten>;
using CosineSimilarity = FunctionHandle<fn::CosineSimilarity>;
using PairwiseDistance = FunctionHandle<fn::PairwiseDistance>;

}  // namespace undertow::nn
