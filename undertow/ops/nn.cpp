// SPDX-License-Identifier: Apache-2.0
// Functions of neural networks, composed of primitives; fusion makes one kernel of each.
#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/precision.h"

namespace undertow::ops {
namespace {

/// x less its maximum along an axis. A row of -inf stays -inf instead of becoming NaN.
Tensor shifted(const Tensor& x, const Axes& axes) {
  const Tensor top = stop_gradient(reduce_max(x, axes, true));
  return sub(x, select(isfinite(top), top, select(isnan(top), top, 0.0)));
}

void check_logits(const Tensor& logits, const Tensor& labels, const char* what) {
  UNDERTOW_CHECK(logits.ndim() == 2, ShapeError, "{}: logits must be [N, C], got shape {}", what, logits.shape().str());
  UNDERTOW_CHECK(labels.ndim() >= 1 && labels.shape(0) == logits.shape(0), ShapeError,
                 "{}: {} rows of logits {} against labels {}", what, logits.shape(0), logits.shape().str(),
                 labels.shape().str());
}

}  // namespace

Tensor softmax(const Tensor& given, std::int64_t axis) {
  const Tensor x = high(given);
  const Tensor t = cast(x, is_floating(x.dtype()) ? compute_type(x.dtype()) : DType::kFloat32);
  const Axes axes{normalize_axis(axis, x.ndim(), "softmax")};
  const Tensor e = exp(shifted(t, axes));
  const Tensor total = reduce_sum(e, axes, true);
  // A row of -inf has total 0: all zeros, not NaN.
  const Tensor y = div(e, select(equal(total, 0.0), 1.0, total));
  return cast(y, is_floating(x.dtype()) ? x.dtype() : DType::kFloat32);
}

Tensor log_softmax(const Tensor& given, std::int64_t axis) {
  const Tensor x = high(given);
  const Tensor t = cast(x, is_floating(x.dtype()) ? compute_type(x.dtype()) : DType::kFloat32);
  const Axes axes{normalize_axis(axis, x.ndim(), "log_softmax")};
  const Tensor s = shifted(t, axes);
  return cast(sub(s, log(reduce_sum(exp(s), axes, true))), is_floating(x.dtype()) ? x.dtype() : DType::kFloat32);
}

Tensor cross_entropy_sparse(const Tensor& logits, const Tensor& labels) {
  check_logits(logits, labels, "cross entropy");
  UNDERTOW_CHECK(labels.ndim() == 1, ShapeError, "cross entropy: class ids must be [N], got shape {}",
                 labels.shape().str());
  UNDERTOW_CHECK(is_integral(labels.dtype()), TypeError, "cross entropy: class ids must be integers, got {}",
                 name_of(labels.dtype()));
  const std::int64_t classes = logits.shape(1);
  apply("check_index", {labels}, {{"low", std::int64_t{0}}, {"high", classes}});
  const Tensor t = cast(logits, compute_type(logits.dtype()));
  const Tensor s = shifted(t, {1});
  const Tensor hit = equal(cast(expand_dims(labels, 1), DType::kInt32), iota(logits.shape(), 1, DType::kInt32));
  const Tensor picked = reduce_sum(select(hit, s, 0.0), {1}, true);
  return squeeze(sub(log(reduce_sum(exp(s), {1}, true)), picked), {1});
}

Tensor cross_entropy_dense(const Tensor& logits, const Tensor& labels) {
  check_logits(logits, labels, "cross entropy");
  UNDERTOW_CHECK(labels.shape() == logits.shape(), ShapeError,
                 "cross entropy: probabilities must have the logits' shape {}, got {}", logits.shape().str(),
                 labels.shape().str());
  const Tensor t = cast(labels, compute_type(logits.dtype()));
  return neg(reduce_sum(mul(log_softmax(cast(logits, t.dtype()), 1), t), {1}, false));
}

void assign(const Parameter& parameter, const Tensor& value) {
  UNDERTOW_CHECK(value.shape() == parameter.shape(), ShapeError, "parameter '{}' has shape {}, the new value {}",
                 parameter.name(), parameter.shape().str(), value.shape().str());
  dispatcher().assign(parameter, cast(value, parameter.dtype()));
}

}  // namespace undertow::ops
