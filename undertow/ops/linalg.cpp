// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/linalg.h"

#include <algorithm>

#include "undertow/base/check.h"
#include "undertow/ops/arrange.h"
#include "undertow/ops/diagonal.h"
#include "undertow/ops/statistics.h"

namespace undertow::ops {

using Ints = std::vector<std::int64_t>;

Tensor tensordot(const Tensor& a, const Tensor& b, Axes a_axes, Axes b_axes) {
  UNDERTOW_CHECK(a_axes.size() == b_axes.size(), ValueError, "tensordot: {} axes of the one, {} of the other",
                 a_axes.size(), b_axes.size());
  for (auto& i : a_axes) i = normalize_axis(i, a.ndim(), "tensordot");
  for (auto& i : b_axes) i = normalize_axis(i, b.ndim(), "tensordot");
  std::int64_t inner = 1;
  for (std::size_t i = 0; i < a_axes.size(); ++i) {
    const std::int64_t n = a.shape(static_cast<int>(a_axes[i]));
    UNDERTOW_CHECK(n == b.shape(static_cast<int>(b_axes[i])), ShapeError,
                   "tensordot: axis {} of {} and axis {} of {} differ", a_axes[i], a.shape().str(), b_axes[i],
                   b.shape().str());
    inner *= n;
  }
  Ints result;
  const auto others = [&](const Tensor& x, const Axes& axes, std::int64_t& size) {
    Ints rest;
    for (int d = 0; d < x.ndim(); ++d) {
      if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
      rest.push_back(d);
      result.push_back(x.shape(d));
      size *= x.shape(d);
    }
    return rest;
  };
  std::int64_t m = 1, n = 1;
  Ints a_order = others(a, a_axes, m), b_order = b_axes;
  a_order.insert(a_order.end(), a_axes.begin(), a_axes.end());
  const Ints b_rest = others(b, b_axes, n);
  b_order.insert(b_order.end(), b_rest.begin(), b_rest.end());
  const Tensor left = reshape(a.ndim() ? transpose(a, a_order) : a, {m, inner});
  const Tensor right = reshape(b.ndim() ? transpose(b, b_order) : b, {inner, n});
  return reshape(matmul(left, right), result);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  if (a.ndim() == 0 || b.ndim() == 0) return mul(a, b);
  return tensordot(a, b, {-1}, {b.ndim() == 1 ? -1 : -2});
}
Tensor inner(const Tensor& a, const Tensor& b) {
  if (a.ndim() == 0 || b.ndim() == 0) return mul(a, b);
  return tensordot(a, b, {-1}, {-1});
}
Tensor outer(const Tensor& a, const Tensor& b) { return mul(reshape(a, {-1, 1}), reshape(b, {1, -1})); }
Tensor vecdot(const Tensor& a, const Tensor& b, std::int64_t axis) { return reduce_sum(mul(a, b), {axis}); }

Tensor kron(const Tensor& a, const Tensor& b) {
  const int rank = std::max(a.ndim(), b.ndim());
  const auto spread = [&](const Tensor& x, bool first) {
    Ints s;
    for (int d = 0; d < rank; ++d) {
      const int i = d - (rank - x.ndim());
      const std::int64_t n = i < 0 ? 1 : x.shape(i);
      s.push_back(first ? n : 1);
      s.push_back(first ? 1 : n);
    }
    return reshape(x, s);
  };
  UNDERTOW_CHECK(2 * rank <= Shape::kMaxRank, ShapeError, "kron: takes tensors of up to {} dimensions, got {}",
                 Shape::kMaxRank / 2, rank);
  const Tensor y = mul(spread(a, true), spread(b, false));
  Ints s;
  for (int d = 0; d < rank; ++d) s.push_back(y.shape(2 * d) * y.shape(2 * d + 1));
  return reshape(y, s);
}

Tensor cross(const Tensor& a, const Tensor& b, std::optional<std::int64_t> axis) {
  const Shape s = broadcast(a.shape(), b.shape());
  if (!axis) {
    const auto* at = std::find(s.begin(), s.end(), 3);
    UNDERTOW_CHECK(at != s.end(), ShapeError, "cross: no dimension of {} has 3 elements", s.str());
    axis = at - s.begin();
  }
  const int d = normalize_axis(*axis, s.rank(), "cross");
  UNDERTOW_CHECK(s[d] == 3, ShapeError, "cross: dimension {} of {} must have 3 elements", d, s.str());
  const Tensor x = broadcast_to(a, s), y = broadcast_to(b, s);
  const auto next = [&](const Tensor& t, std::int64_t by) { return roll(t, {-by}, {d}); };
  return sub(mul(next(x, 1), next(y, 2)), mul(next(x, 2), next(y, 1)));
}

Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, const Operand& beta, const Operand& alpha) {
  return add(mul(x, beta), mul(matmul(a, b), alpha));
}
Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, const Operand& beta, const Operand& alpha) {
  UNDERTOW_CHECK(a.ndim() == 3 && b.ndim() == 3, ShapeError,
                 "addbmm: the batches must have 3 dimensions, got {} and {}", a.shape().str(), b.shape().str());
  return add(mul(x, beta), mul(tensordot(a, b, {0, 2}, {0, 1}), alpha));
}
Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, const Operand& beta, const Operand& alpha) {
  return add(mul(x, beta), mul(outer(a, b), alpha));
}

Tensor cdist(const Tensor& a, const Tensor& b, double p) {
  UNDERTOW_CHECK(a.ndim() >= 2 && b.ndim() >= 2 && a.shape(-1) == b.shape(-1), ShapeError,
                 "cdist: needs rows of one length, got shapes {} and {}", a.shape().str(), b.shape().str());
  UNDERTOW_CHECK(p >= 0, ValueError, "cdist: p cannot be negative, got {}", p);
  return vector_norm(sub(expand_dims(a, -2), expand_dims(b, -3)), p, {-1});
}

Tensor matrix_power(const Tensor& x, std::int64_t n) {
  UNDERTOW_CHECK(x.ndim() >= 2 && x.shape(-1) == x.shape(-2), ShapeError, "matrix_power: needs square matrices, got {}",
                 x.shape().str());
  UNDERTOW_CHECK(n >= 0, ValueError, "matrix_power: negative powers need an inverse, which is not supported; got {}",
                 n);
  if (n == 0) return broadcast_to(eye(x.shape(-1), x.shape(-1), x.dtype()), x.shape());
  Tensor result, base = x;
  for (;; base = matmul(base, base)) {
    if (n & 1) result = result.defined() ? matmul(result, base) : base;
    if ((n >>= 1) == 0) return result;
  }
}

}  // namespace undertow::ops
