// SPDX-License-Identifier: Apache-2.0
// ops/ops.h: the functions users call. Names and defaults are MindSpore's where it has the function.
//
// All of them trace, run eagerly, and differentiate. Binary functions broadcast as NumPy does and promote dtypes as
// base/dtype.h says; a C++ or Python number takes the tensor's dtype (a float number with an integer tensor: float32).
// Shape and dtype errors name the op, the shapes, the cell's path and the user's line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "undertow/tensor/tensor.h"

namespace undertow::ops {

/// A tensor or a number.
class Operand {
 public:
  Operand(const Tensor& t) : tensor_(t) {}
  Operand(double v) : is_float_(true), number_(v) {}
  Operand(float v) : Operand(static_cast<double>(v)) {}
  Operand(bool v) : is_bool_(true), number_(v) {}
  Operand(std::int64_t v) : number_(static_cast<double>(v)), integer_(v) {}
  Operand(int v) : Operand(static_cast<std::int64_t>(v)) {}
  bool is_tensor() const { return tensor_.defined(); }
  const Tensor& tensor() const { return tensor_; }
  /// The dtype a number takes beside a tensor of dtype `other`.
  DType dtype_beside(DType other) const;
  /// As a tensor of `dtype` (a number becomes a constant).
  Tensor as(DType dtype) const;

 private:
  Tensor tensor_;
  bool is_float_ = false, is_bool_ = false;
  double number_ = 0;
  std::int64_t integer_ = 0;
};

using Axes = std::vector<std::int64_t>;  // empty: all axes

// ---- elementwise (ops/elementwise.cpp)
Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);  ///< max(x, 0); NaN stays NaN
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);  ///< half to even
Tensor trunc(const Tensor& x);
Tensor sign(const Tensor& x);
Tensor logical_not(const Tensor& x);
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
Tensor cast(const Tensor& x, DType dtype);
Tensor add(const Operand& x, const Operand& y);
Tensor sub(const Operand& x, const Operand& y);
Tensor mul(const Operand& x, const Operand& y);
Tensor div(const Operand& x, const Operand& y);  ///< true division: integers give float32
Tensor floor_div(const Operand& x, const Operand& y);
Tensor floor_mod(const Operand& x, const Operand& y);  ///< sign of the divisor, as Python's %
Tensor pow(const Operand& x, const Operand& y);
Tensor maximum(const Operand& x, const Operand& y);
Tensor minimum(const Operand& x, const Operand& y);
Tensor atan2(const Operand& x, const Operand& y);
Tensor equal(const Operand& x, const Operand& y);
Tensor not_equal(const Operand& x, const Operand& y);
Tensor less(const Operand& x, const Operand& y);
Tensor less_equal(const Operand& x, const Operand& y);
Tensor greater(const Operand& x, const Operand& y);
Tensor greater_equal(const Operand& x, const Operand& y);
Tensor logical_and(const Operand& x, const Operand& y);
Tensor logical_or(const Operand& x, const Operand& y);
Tensor logical_xor(const Operand& x, const Operand& y);
Tensor select(const Tensor& condition, const Operand& x, const Operand& y);
Tensor clip(const Tensor& x, std::optional<double> low, std::optional<double> high);
Tensor copy(const Tensor& x);
Tensor stop_gradient(const Tensor& x);

// ---- creation (ops/create.cpp)
Tensor constant(double value, DType dtype);
Tensor constant_int(std::int64_t value, DType dtype);
Tensor full(const Shape& shape, double value, DType dtype = DType::kFloat32);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor iota(const Shape& shape, int axis, DType dtype);
Tensor arange(std::int64_t n, DType dtype = DType::kInt64);
/// Uniform float32 in [0, 1), keyed by (seed, step, position in the trace).
Tensor random_uniform(const Shape& shape);
/// Zeroes each element with probability p and scales the rest by 1/(1-p).
Tensor dropout(const Tensor& x, double p);

// ---- reductions (ops/reduce.cpp)
Tensor reduce_sum(const Tensor& x, Axes axes = {}, bool keep_dims = false);
Tensor reduce_mean(const Tensor& x, Axes axes = {}, bool keep_dims = false);
Tensor reduce_prod(const Tensor& x, Axes axes = {}, bool keep_dims = false);
Tensor reduce_max(const Tensor& x, Axes axes = {}, bool keep_dims = false);  ///< ValueError over no elements
Tensor reduce_min(const Tensor& x, Axes axes = {}, bool keep_dims = false);
/// Biased (ddof 0) or with n - ddof; two passes.
Tensor reduce_var(const Tensor& x, Axes axes = {}, bool keep_dims = false, int ddof = 0);
Tensor reduce_all(const Tensor& x, Axes axes = {}, bool keep_dims = false);
Tensor reduce_any(const Tensor& x, Axes axes = {}, bool keep_dims = false);
Tensor argmax(const Tensor& x, std::int64_t axis = -1, bool keep_dims = false);  ///< int64
Tensor argmin(const Tensor& x, std::int64_t axis = -1, bool keep_dims = false);

// ---- shape (ops/shape.cpp)
Tensor reshape(const Tensor& x, std::vector<std::int64_t> shape);  ///< one -1 allowed
Tensor flatten(const Tensor& x, std::int64_t start_dim = 1, std::int64_t end_dim = -1);
Tensor transpose(const Tensor& x, std::vector<std::int64_t> perm = {});  ///< empty: reversed
Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b);
Tensor expand_dims(const Tensor& x, std::int64_t axis);
Tensor squeeze(const Tensor& x, Axes axes = {});
Tensor broadcast_to(const Tensor& x, const Shape& shape);
Tensor slice(const Tensor& x, std::vector<std::int64_t> begin, std::vector<std::int64_t> steps, const Shape& shape);
Tensor pad(const Tensor& x, std::vector<std::int64_t> low, std::vector<std::int64_t> high, double value = 0);
Tensor concat(const std::vector<Tensor>& xs, std::int64_t axis = 0);
Tensor stack(const std::vector<Tensor>& xs, std::int64_t axis = 0);
std::vector<Tensor> split(const Tensor& x, std::int64_t sections, std::int64_t axis = 0);
/// Indices may be negative; out of range is an error naming value, position and range, in every mode.
Tensor gather(const Tensor& x, const Tensor& indices, std::int64_t axis = 0);
Tensor one_hot(const Tensor& indices, std::int64_t depth, double on = 1, double off = 0, DType dtype = DType::kFloat32);

/// One item of x[...]: an integer, a slice, `None`, `...`, or an integer tensor.
struct Index {
  enum Kind { kInteger, kSlice, kNewAxis, kEllipsis, kTensor } kind;
  std::int64_t value = 0;                        // kInteger
  std::optional<std::int64_t> begin, end, step;  // kSlice
  Tensor tensor;                                 // kTensor
};
/// NumPy's basic indexing, plus at most one integer tensor.
Tensor index(const Tensor& x, const std::vector<Index>& items);

// ---- linear algebra and convolution (ops/matmul.cpp, ops/conv.cpp, ops/pool.cpp)
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
struct ConvOptions {
  std::vector<std::int64_t> strides{1, 1}, pads{0, 0, 0, 0} /* top bottom left right */, dilations{1, 1};
  std::int64_t groups = 1;
};
/// x [N, C, H, W], weight [O, C/groups, kh, kw].
Tensor conv2d(const Tensor& x, const Tensor& weight, const ConvOptions& options = {});
struct PoolOptions {
  std::vector<std::int64_t> kernel{1, 1}, strides{1, 1}, pads{0, 0, 0, 0};
  bool count_include_pad = true;  // average only
};
Tensor max_pool2d(const Tensor& x, const PoolOptions& options);
Tensor avg_pool2d(const Tensor& x, const PoolOptions& options);

// ---- neural network functions (ops/nn.cpp)
Tensor softmax(const Tensor& x, std::int64_t axis = -1);
Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);
/// Per-row loss [N] of logits [N, C] with class ids [N] (any integer type). A class outside 0..C-1 is an error naming
/// the value, its row and the range, in every mode.
Tensor cross_entropy_sparse(const Tensor& logits, const Tensor& labels);
/// Per-row loss [N] with probabilities [N, C].
Tensor cross_entropy_dense(const Tensor& logits, const Tensor& labels);

/// Parameter write: `parameter` has the value `value` (cast to its dtype; equal shapes) for every later read.
void assign(const Parameter& parameter, const Tensor& value);

}  // namespace undertow::ops

namespace undertow {
// Operators on tensors.
inline Tensor operator+(const Tensor& x, const ops::Operand& y) { return ops::add(x, y); }
inline Tensor operator-(const Tensor& x, const ops::Operand& y) { return ops::sub(x, y); }
inline Tensor operator*(const Tensor& x, const ops::Operand& y) { return ops::mul(x, y); }
inline Tensor operator/(const Tensor& x, const ops::Operand& y) { return ops::div(x, y); }
inline Tensor operator+(double x, const Tensor& y) { return ops::add(x, y); }
inline Tensor operator-(double x, const Tensor& y) { return ops::sub(x, y); }
inline Tensor operator*(double x, const Tensor& y) { return ops::mul(x, y); }
inline Tensor operator/(double x, const Tensor& y) { return ops::div(x, y); }
inline Tensor operator-(const Tensor& x) { return ops::neg(x); }
}  // namespace undertow
