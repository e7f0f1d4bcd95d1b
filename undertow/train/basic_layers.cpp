// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/basic_layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "undertow/base/check.h"
#include "undertow/ops/image.h"
#include "undertow/ops/loss.h"
#include "undertow/ops/nn_misc.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/statistics.h"
#include "undertow/ops/window.h"

namespace undertow::nn {
namespace {

using Ints = std::vector<std::int64_t>;

void require_positive(const char* cls, const char* argument, std::int64_t value) {
  UNDERTOW_CHECK(value > 0, ValueError, "{}: '{}' must be a positive number but is {}", cls, argument, value);
}

/// A number stands for all sides.
Ints sides(const Ints& padding, int dims, const char* cls) {
  if (padding.size() == 1) return Ints(static_cast<std::size_t>(2 * dims), padding[0]);
  UNDERTOW_CHECK(padding.size() % 2 == 0, ValueError, "{}: 'padding' must be one number or pairs, got ({})", cls,
                 fmt::join(padding, ", "));
  return padding;
}

void never_negative(const Ints& padding, const char* cls) {
  for (const auto p : padding)
    UNDERTOW_CHECK(p >= 0, ValueError, "{}: 'padding' must not be negative but is ({})", cls, fmt::join(padding, ", "));
}

Ints ints_of(const Value& v, const char* what) {
  if (!v.is_list()) return {detail::scalar<std::int64_t>(v)};
  Ints out;
  for (const Value& item : v.list()) out.push_back(detail::scalar<std::int64_t>(item));
  UNDERTOW_CHECK(!out.empty(), ValueError, "{} must not be empty", what);
  return out;
}

}  // namespace

// ---- with parameters
EmbeddingCell::EmbeddingCell(std::int64_t vocab_size, std::int64_t embedding_size, const EmbeddingOptions& o)
    : vocab_(vocab_size), size_(embedding_size), options_(o) {
  require_positive("Embedding", "vocab_size", vocab_);
  require_positive("Embedding", "embedding_size", size_);
  Tensor table = common::initializer(o.embedding_table, Shape{vocab_, size_}, o.dtype);
  if (o.padding_idx) {
    const std::int64_t row = *o.padding_idx;
    UNDERTOW_CHECK(row >= 0 && row < vocab_, ValueError,
                   "Embedding: 'padding_idx' must be from 0 to vocab_size - 1 = {} but is {}", vocab_ - 1, row);
    table = table.clone();
    const std::size_t bytes = static_cast<std::size_t>(size_) * size_of(o.dtype);
    std::memset(static_cast<std::byte*>(table.data()) + static_cast<std::size_t>(row) * bytes, 0, bytes);
  }
  insert_param("embedding_table", Parameter(table, "embedding_table"));
}

Tensor EmbeddingCell::construct(const Tensor& ids) {
  UNDERTOW_CHECK(is_integral(ids.dtype()), TypeError, "{}: the ids must be integers but are {}", where(),
                 name_of(ids.dtype()));
  const Parameter table = get_param("embedding_table");
  if (!options_.use_one_hot) return ops::embedding(ids, table);
  Ints shape = ids.shape().to_vector();
  shape.push_back(size_);
  const Tensor rows = ops::one_hot(ops::reshape(ids, {ids.size()}), vocab_, 1, 0, table.dtype());
  return ops::reshape(ops::matmul(rows, table), shape);
}

EmbeddingLookupCell::EmbeddingLookupCell(std::int64_t vocab_size, std::int64_t embedding_size,
                                         const EmbeddingLookupOptions& o)
    : max_norm_(o.max_norm) {
  require_positive("EmbeddingLookup", "vocab_size", vocab_size);
  require_positive("EmbeddingLookup", "embedding_size", embedding_size);
  UNDERTOW_CHECK(!o.max_norm || *o.max_norm > 0, ValueError, "EmbeddingLookup: 'max_norm' must be positive but is {}",
                 *o.max_norm);
  insert_param(
      "embedding_table",
      Parameter(common::initializer(o.param_init, Shape{vocab_size, embedding_size}, o.dtype), "embedding_table"));
}

Tensor EmbeddingLookupCell::construct(const Tensor& ids) {
  return ops::embedding(ids, get_param("embedding_table"), std::nullopt, max_norm_);
}

BiDenseCell::BiDenseCell(std::int64_t in1, std::int64_t in2, std::int64_t out, const BiDenseOptions& o) {
  require_positive("BiDense", "in1_channels", in1);
  require_positive("BiDense", "in2_channels", in2);
  require_positive("BiDense", "out_channels", out);
  const Init bound = common::Uniform(1.0 / std::sqrt(static_cast<double>(in1)));
  insert_param("weight",
               Parameter(common::initializer(o.weight_init.or_else(bound), Shape{out, in1, in2}, o.dtype), "weight"));
  if (o.has_bias)
    insert_param("bias", Parameter(common::initializer(o.bias_init.or_else(bound), Shape{out}, o.dtype), "bias"));
}

Tensor BiDenseCell::construct(const Tensor& x1, const Tensor& x2) {
  return ops::bidense(x1, x2, get_param("weight"), get_param("bias"));
}

// ---- without
namespace fn {

template <int N>
void DropoutNd<N>::check() const {
  UNDERTOW_CHECK(p >= 0 && p <= 1, ValueError, "{}: 'p' must be in [0, 1] but is {}", kName, p);
}
template <int N>
Tensor DropoutNd<N>::operator()(bool training, const Tensor& x) const {
  if (!training || p == 0) return x;
  return ops::dropout_slices(x, p, N == 1 && x.ndim() == 2 ? 1 : 2);
}
template struct DropoutNd<1>;
template struct DropoutNd<2>;
template struct DropoutNd<3>;

Tensor OneHot::operator()(const Tensor& indices) const {
  const Tensor y = ops::one_hot(indices, depth, on_value, off_value, dtype);
  const int at = normalize_axis(axis, y.ndim(), "OneHot: axis");
  Ints perm;
  for (int d = 0; d + 1 < y.ndim(); ++d) perm.push_back(d);
  perm.insert(perm.begin() + at, y.ndim() - 1);
  return ops::transpose(y, perm);
}

void Pad::check() const {
  UNDERTOW_CHECK(mode == "CONSTANT" || mode == "REFLECT" || mode == "SYMMETRIC", ValueError,
                 "Pad: 'mode' must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC' but is '{}'", mode);
  for (const auto& [low, high] : paddings)
    UNDERTOW_CHECK(low >= 0 && high >= 0, ValueError, "Pad: 'paddings' must not be negative, but a pair is ({}, {})",
                   low, high);
}
Tensor Pad::operator()(const Tensor& x) const {
  UNDERTOW_CHECK(static_cast<int>(paddings.size()) == x.ndim(), ValueError,
                 "Pad: 'paddings' must hold a pair for each dimension of the input {}, but holds {}", x.shape().str(),
                 paddings.size());
  Ints low, high;
  for (const auto& [l, h] : paddings) low.push_back(l), high.push_back(h);
  const std::string name = mode == "CONSTANT" ? "constant" : mode == "REFLECT" ? "reflect" : "symmetric";
  return ops::pad_mode(x, low, high, name);
}

template <int N>
Tensor ConstantPad<N>::operator()(const Tensor& x) const {
  return ops::pad_last(x, sides(padding, N, kName), "constant", value);
}
Tensor ZeroPad2d::operator()(const Tensor& x) const { return ops::pad_last(x, sides(padding, 2, kName), "constant"); }
template <int N>
Tensor ReflectionPad<N>::operator()(const Tensor& x) const {
  never_negative(padding, kName);
  return ops::pad_last(x, sides(padding, N, kName), "reflect");
}
template <int N>
Tensor ReplicationPad<N>::operator()(const Tensor& x) const {
  return ops::pad_last(x, sides(padding, N, kName), "replicate");
}
#define UNDERTOW_INSTANTIATE(N)     \
  template struct ConstantPad<N>;   \
  template struct ReflectionPad<N>; \
  template struct ReplicationPad<N>;
UNDERTOW_INSTANTIATE(1)
UNDERTOW_INSTANTIATE(2)
UNDERTOW_INSTANTIATE(3)
#undef UNDERTOW_INSTANTIATE

Tensor Upsample::operator()(const Tensor& x) const {
  return ops::interpolate(x, {.size = size,
                              .scale_factor = scale_factor,
                              .mode = mode,
                              .align_corners = align_corners.value_or(false),
                              .recompute_scale_factor = recompute_scale_factor.value_or(false)});
}

Tensor ResizeBilinear::operator()(const Tensor& x, const std::optional<Value>& size,
                                  const std::optional<Value>& scale_factor,
                                  const std::optional<bool>& align_corners) const {
  UNDERTOW_CHECK(x.ndim() == 4, ShapeError, "ResizeBilinear: the input must be (N, C, H, W), but its shape is {}",
                 x.shape().str());
  UNDERTOW_CHECK(size.has_value() != scale_factor.has_value(), ValueError,
                 "ResizeBilinear: give either 'size' or 'scale_factor'");
  Ints out;
  if (size) out = ints_of(*size, "ResizeBilinear: 'size'");
  else {
    const auto factor = detail::scalar<std::int64_t>(*scale_factor);
    out = {x.shape(2) * factor, x.shape(3) * factor};
  }
  return ops::interpolate(x, {.size = out,
                              .scale_factor = {},
                              .mode = "bilinear",
                              .align_corners = align_corners.value_or(false),
                              .half_pixel = half_pixel_centers});
}

Tensor PixelShuffle::operator()(const Tensor& x) const { return ops::pixel_shuffle(x, upscale_factor); }
Tensor PixelUnshuffle::operator()(const Tensor& x) const { return ops::pixel_unshuffle(x, downscale_factor); }
Tensor ChannelShuffle::operator()(const Tensor& x) const { return ops::channel_shuffle(x, groups); }

void Unfold::check() const {
  for (const auto& [name, v] : {std::pair("ksizes", &ksizes), {"strides", &strides}, {"rates", &rates}})
    UNDERTOW_CHECK(v->size() == 4 && (*v)[0] == 1 && (*v)[3] == 1 && (*v)[1] > 0 && (*v)[2] > 0, ValueError,
                   "Unfold: '{}' must be (1, row, column, 1) with positive numbers, got ({})", name,
                   fmt::join(*v, ", "));
}
Tensor Unfold::operator()(const Tensor& x) const {
  const Ints k{ksizes[1], ksizes[2]}, s{strides[1], strides[2]}, d{rates[1], rates[2]};
  UNDERTOW_CHECK(x.ndim() == 4, ShapeError, "Unfold: the input must be (N, C, H, W), but its shape is {}",
                 x.shape().str());
  const Ints pads = ops::window_pads(padding, {}, {x.shape(2), x.shape(3)}, k, s, d, "Unfold");
  return ops::extract_patches(x, k, d, pads, s);
}
Tensor Fold::operator()(const Tensor& x) const {
  return ops::fold(x, output_size, kernel_size, dilation, padding, stride);
}

Tensor Unflatten::operator()(const Tensor& x) const {
  const int at = normalize_axis(axis, x.ndim(), "Unflatten: axis");
  Ints shape = x.shape().to_vector(), inner = unflattened_size;
  if (const auto free = std::find(inner.begin(), inner.end(), -1); free != inner.end()) {
    std::int64_t known = -1;
    for (const auto n : inner) known *= n;
    if (known > 0 && x.shape(at) % known == 0) *free = x.shape(at) / known;
  }
  std::int64_t total = 1;
  for (const auto n : inner) total *= n;
  UNDERTOW_CHECK(total == x.shape(at), ShapeError,
                 "Unflatten: 'unflattened_size' ({}) does not multiply to dimension {} of the input {}",
                 fmt::join(unflattened_size, ", "), at, x.shape().str());
  shape.erase(shape.begin() + at);
  shape.insert(shape.begin() + at, inner.begin(), inner.end());
  return ops::reshape(x, shape);
}

void Roll::check() const {
  UNDERTOW_CHECK(shift.size() == axis.size() && !shift.empty(), ValueError,
                 "Roll: 'shift' and 'axis' must have the same length, got ({}) and ({})", fmt::join(shift, ", "),
                 fmt::join(axis, ", "));
}
Tensor Roll::operator()(const Tensor& x) const {
  Tensor y = x;
  for (std::size_t i = 0; i < shift.size(); ++i) {
    const int d = normalize_axis(axis[i], x.ndim(), "Roll: axis");
    const std::int64_t n = x.shape(d), low = n == 0 ? 0 : ((shift[i] % n) + n) % n;
    if (low == 0) continue;
    Ints begin(x.shape().size(), 0), whole(begin);
    const Ints steps(begin.size(), 1);
    begin[static_cast<std::size_t>(d)] = n - low;
    Shape tail = y.shape(), head = y.shape();
    tail[d] = low, head[d] = n - low;
    y = ops::concat({ops::slice(y, begin, steps, tail), ops::slice(y, whole, steps, head)}, d);
  }
  return y;
}

Tensor Tril::operator()(const Tensor& x, const std::optional<std::int64_t>& k) const {
  return ops::triangle(x, k.value_or(0), true);
}
Tensor Triu::operator()(const Tensor& x, const std::optional<std::int64_t>& k) const {
  return ops::triangle(x, k.value_or(0), false);
}
Tensor CosineSimilarity::operator()(const Tensor& x1, const Tensor& x2) const {
  return ops::cosine_similarity(x1, x2, dim, eps);
}
Tensor PairwiseDistance::operator()(const Tensor& x1, const Tensor& x2) const {
  return ops::pairwise_distance(x1, x2, p, eps, keepdim);
}
Tensor MatMul::operator()(const Tensor& x1, const Tensor& x2) const {
  return ops::matmul(x1, x2, transpose_x1, transpose_x2);
}
Tensor ReduceLogSumExp::operator()(const Tensor& x) const { return ops::log_sum_exp(x, axis, keep_dims); }
std::pair<Tensor, Tensor> Moments::operator()(const Tensor& x) const {
  const bool keep = keep_dims.value_or(false);
  return {ops::reduce_mean(x, axis, keep), ops::reduce_var(x, axis, keep)};
}
Tensor ClipByNorm::operator()(const Tensor& x, const Value& clip_norm) const {
  const Tensor limit =
      clip_norm.is_tensor() ? clip_norm.tensor() : ops::constant(detail::scalar<double>(clip_norm), DType::kFloat32);
  return ops::clip_to_norm(x, limit, axis);
}

void L1Regularizer::check() const {
  UNDERTOW_CHECK(scale > 0 && std::isfinite(scale), ValueError,
                 "L1Regularizer: 'scale' must be a positive number but is {}", scale);
}
Tensor L1Regularizer::operator()(const Tensor& weights) const {
  return ops::mul(ops::reduce_sum(ops::abs(weights)), scale);
}

}  // namespace fn

}  // namespace undertow::nn
