// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/scatter.h"

namespace undertow::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor as_float(const Tensor& x) { return is_floating(x.dtype()) ? x : cast(x, DType::kFloat32); }

/// f in the compute type of x, the result in x's own.
template <typename F>
Tensor widened(const Tensor& x, F f) {
  const Tensor t = as_float(x);
  return cast(f(cast(t, compute_type(t.dtype()))), t.dtype());
}

}  // namespace

Tensor std_dev(const Tensor& x, Axes axes, bool keep_dims, int ddof) {
  return sqrt(reduce_var(x, std::move(axes), keep_dims, ddof));
}

Tensor logsumexp(const Tensor& x, Axes axes, bool keep_dims) {
  return widened(x, [&](const Tensor& t) {
    if (t.size() == 0) return log(reduce_sum(exp(t), axes, keep_dims));
    const Tensor most = stop_gradient(reduce_max(t, axes, true));
    const Tensor top = select(isfinite(most), most, select(isnan(most), most, 0.0));
    const Tensor sum = reduce_sum(exp(sub(t, top)), axes, keep_dims);
    return add(log(sum), reshape(top, sum.shape().to_vector()));
  });
}

Tensor vector_norm(const Tensor& x, double p, Axes axes, bool keep_dims) {
  return widened(x, [&](const Tensor& t) {
    if (p == 2) {
      // At 0 the root has no derivative: 0 is taken, as PyTorch does.
      const Tensor sum = reduce_sum(square(t), axes, keep_dims), zero = equal(sum, 0.0);
      return select(zero, 0.0, sqrt(select(zero, 1.0, sum)));
    }
    if (p == kInf) return reduce_max(abs(t), axes, keep_dims);
    if (p == -kInf) return reduce_min(abs(t), axes, keep_dims);
    if (p == 0) return reduce_sum(cast(not_equal(t, 0.0), t.dtype()), axes, keep_dims);
    if (p == 1) return reduce_sum(abs(t), axes, keep_dims);
    const Tensor sum = reduce_sum(pow(abs(t), p), axes, keep_dims), zero = equal(sum, 0.0);
    return p > 0 ? Tensor(select(zero, 0.0, pow(select(zero, 1.0, sum), 1 / p))) : pow(sum, 1 / p);
  });
}

Tensor matrix_norm(const Tensor& x, double p, const Axes& axes, bool keep_dims) {
  UNDERTOW_CHECK(axes.size() == 2, ValueError, "norm: a matrix norm needs two axes, got {}", axes.size());
  const bool rows = std::abs(p) == kInf;
  UNDERTOW_CHECK(rows || std::abs(p) == 1, ValueError,
                 "norm: the order of a matrix norm must be 'fro', 1, -1, inf or -inf, got {}", p);
  return widened(x, [&](const Tensor& t) {
    const std::int64_t row = normalize_axis(axes[0], t.ndim(), "norm"),
                       column = normalize_axis(axes[1], t.ndim(), "norm");
    const Tensor sums = reduce_sum(abs(t), {rows ? column : row}, true);
    const Axes rest{rows ? row : column};
    const Tensor y = p > 0 ? reduce_max(sums, rest, true) : reduce_min(sums, rest, true);
    return keep_dims ? y : squeeze(y, {row, column});
  });
}

Tensor count_nonzero(const Tensor& x, Axes axes, bool keep_dims, DType dtype) {
  return reduce_sum(cast(not_equal(x, 0), dtype), std::move(axes), keep_dims);
}

Tensor nansum(const Tensor& x, Axes axes, bool keep_dims) {
  return reduce_sum(is_floating(x.dtype()) ? select(isnan(x), 0.0, x) : x, std::move(axes), keep_dims);
}

Tensor nanmean(const Tensor& x, Axes axes, bool keep_dims) {
  return widened(x, [&](const Tensor& t) {
    return div(nansum(t, axes, keep_dims), reduce_sum(cast(logical_not(isnan(t)), t.dtype()), axes, keep_dims));
  });
}

Tensor l2_loss(const Tensor& x) {
  return widened(x, [](const Tensor& t) { return mul(reduce_sum(square(t)), 0.5); });
}

Tensor cosine_similarity(const Tensor& x, const Tensor& y, std::int64_t dim, double eps) {
  const Shape s = broadcast(x.shape(), y.shape());
  const Axes axes{normalize_axis(dim, s.rank(), "cosine_similarity")};
  const Tensor a = broadcast_to(as_float(x), s), b = broadcast_to(as_float(y), s);
  const Tensor dot = reduce_sum(mul(a, b), axes);
  const Tensor lengths = sqrt(mul(reduce_sum(square(a), axes), reduce_sum(square(b), axes)));
  return div(dot, maximum(lengths, eps));
}

Tensor renorm(const Tensor& x, double p, std::int64_t axis, double max_norm) {
  UNDERTOW_CHECK(p > 0, ValueError, "renorm: p must be positive, got {}", p);
  const int a = normalize_axis(axis, x.ndim(), "renorm");
  Axes others;
  for (int d = 0; d < x.ndim(); ++d)
    if (d != a) others.push_back(d);
  const Tensor norm = others.empty() ? abs(x) : vector_norm(x, p, others, true);
  return mul(x, select(greater(norm, max_norm), div(max_norm, add(norm, 1e-7)), 1.0));
}

Tensor histc(const Tensor& x, std::int64_t bins, double low, double high) {
  UNDERTOW_CHECK(bins > 0, ValueError, "histc: the number of bins must be positive, got {}", bins);
  UNDERTOW_CHECK(low <= high, ValueError, "histc: min {} is above max {}", low, high);
  const Tensor flat = cast(reshape(x, {-1}), DType::kFloat64);
  const Tensor zeros = full(Shape{bins}, 0, is_floating(x.dtype()) ? x.dtype() : DType::kInt32);
  if (x.size() == 0) return zeros;
  Tensor from = constant(low, DType::kFloat64), to = constant(high, DType::kFloat64);
  if (low == high) {
    from = reduce_min(flat), to = reduce_max(flat);
    const Tensor flat_range = equal(from, to);
    from = select(flat_range, sub(from, 1.0), from);
    to = select(flat_range, add(to, 1.0), to);
  }
  const Tensor inside = logical_and(greater_equal(flat, from), less_equal(flat, to));
  const Tensor place = floor(mul(div(sub(flat, from), sub(to, from)), static_cast<double>(bins)));
  const Tensor bin = minimum(maximum(cast(select(inside, place, 0.0), DType::kInt64), 0), bins - 1);
  return scatter(zeros, bin, cast(inside, zeros.dtype()), 0, "add");
}

namespace {

Tensor total_norm(const std::vector<Tensor>& xs, double p) {
  if (p == kInf) {
    Tensor top;
    for (const auto& x : xs) {
      const Tensor n = reduce_max(abs(cast(x, DType::kFloat32)));
      top = top.defined() ? maximum(top, n) : n;
    }
    return top;
  }
  Tensor sum;
  for (const auto& x : xs) {
    const Tensor t = cast(x, x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32);
    const Tensor n = reduce_sum(p == 2 ? square(t) : pow(abs(t), p));
    sum = sum.defined() ? add(sum, n) : n;
  }
  return p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

}  // namespace

std::vector<Tensor> clip_by_global_norm(const std::vector<Tensor>& xs, double clip_norm, const Tensor& use_norm) {
  UNDERTOW_CHECK(!xs.empty(), ValueError, "clip_by_global_norm: no tensors given");
  UNDERTOW_CHECK(clip_norm > 0, ValueError, "clip_by_global_norm: clip_norm must be positive, got {}", clip_norm);
  const Tensor norm = use_norm.defined() ? use_norm : total_norm(xs, 2);
  // Divided by a norm that is not finite, gradients would vanish: they become NaN, which a check for overflows sees.
  const Tensor scale =
      select(isfinite(norm), div(clip_norm, maximum(norm, clip_norm)), std::numeric_limits<double>::quiet_NaN());
  std::vector<Tensor> out;
  for (const auto& x : xs) out.push_back(cast(mul(x, scale), x.dtype()));
  return out;
}

std::vector<Tensor> clip_by_norm(const std::vector<Tensor>& xs, double max_norm, double p) {
  UNDERTOW_CHECK(!xs.empty(), ValueError, "clip_by_norm: no tensors given");
  const Tensor scale = minimum(div(max_norm, add(total_norm(xs, p), 1e-6)), 1.0);
  std::vector<Tensor> out;
  for (const auto& x : xs) out.push_back(cast(mul(x, scale), x.dtype()));
  return out;
}

Tensor isin(const Tensor& x, const Tensor& test, bool invert) {
  const Tensor hit = reduce_any(equal(expand_dims(x, -1), reshape(test, {-1})), {-1});
  return invert ? logical_not(hit) : hit;
}

Tensor in_top_k(const Tensor& x, const Tensor& targets, std::int64_t k) {
  UNDERTOW_CHECK(x.ndim() == 2 && targets.ndim() == 1 && targets.size() == x.shape(0), ShapeError,
                 "in_top_k: needs predictions [N, C] and targets [N], got {} and {}", x.shape().str(),
                 targets.shape().str());
  const Tensor own = gather_elements(x, expand_dims(targets, 1), 1);
  const Tensor above = reduce_sum(cast(greater(x, own), DType::kInt64), {1});
  return logical_and(less(above, k), squeeze(isfinite(own), {1}));
}

}  // namespace undertow::ops
