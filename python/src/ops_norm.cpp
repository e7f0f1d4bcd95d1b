// SPDX-License-Identifier: Apache-2.0
// undertow.ops: normalisations.
#include "python/src/ops_nn.h"
#include "undertow/base/check.h"
#include "undertow/ops/nn_misc.h"
#include "undertow/ops/norm.h"

namespace undertow::python {
namespace {

Parameter parameter_or_none(const Tensor& t) { return t.is_parameter() ? Parameter::of(t) : Parameter(); }

}  // namespace

void bind_ops_norm(nb::module_& m) {
  m.def(
      "layer_norm",
      [](const Tensor& x, const Ints& shape, const MaybeTensor& w, const MaybeTensor& b, double eps) {
        const auto n = static_cast<std::int64_t>(shape.values.size());
        const Shape want(shape.values);
        bool fits = n >= 1 && n <= x.ndim();
        for (int d = 0; fits && d < n; ++d) fits = x.shape(x.ndim() - static_cast<int>(n) + d) == want[d];
        UNDERTOW_CHECK(fits, ShapeError, "layer_norm: normalized_shape {} must be the last dimensions of the input {}",
                       want.str(), x.shape().str());
        return ops::layer_norm(x, -n, or_none(w), or_none(b), eps);
      },
      "input"_a, "normalized_shape"_a, "weight"_a.none() = nb::none(), "bias"_a.none() = nb::none(), "eps"_a = 1e-5,
      "(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions.");
  m.def(
      "_layer_norm",
      [](const Tensor& x, const Tensor& gamma, const Tensor& beta, std::int64_t begin, double eps) {
        return ops::layer_norm(x, begin, gamma, beta, eps);
      },
      "x"_a, "gamma"_a, "beta"_a, "begin_norm_axis"_a, "epsilon"_a);
  m.def(
      "group_norm",
      [](const Tensor& x, std::int64_t groups, const MaybeTensor& w, const MaybeTensor& b, double eps) {
        return ops::group_norm(x, groups, or_none(w), or_none(b), eps);
      },
      "input"_a, "num_groups"_a, "weight"_a.none() = nb::none(), "bias"_a.none() = nb::none(), "eps"_a = 1e-5,
      "Normalisation over groups of channels of (N, C, ...).");
  m.def(
      "rms_norm", [](const Tensor& x, const Tensor& gamma, double eps) { return ops::rms_norm(x, gamma, eps); }, "x"_a,
      "gamma"_a, "epsilon"_a = 1e-6, "x / sqrt(mean(x^2) + epsilon) * gamma over the last dimension.");
  m.def(
      "batch_norm",
      [](const Tensor& x, const Tensor& mean, const Tensor& var, const MaybeTensor& w, const MaybeTensor& b,
         bool training, double momentum, double eps) {
        if (!training) return ops::batch_norm(x, mean, var, or_none(w), or_none(b), eps);
        return ops::batch_norm_training(x, parameter_or_none(mean), parameter_or_none(var), or_none(w), or_none(b),
                                        1 - momentum, eps, "batch_norm");
      },
      "input_x"_a, "running_mean"_a, "running_var"_a, "weight"_a.none(), "bias"_a.none(), "training"_a = false,
      "momentum"_a = 0.1, "eps"_a = 1e-5,
      "Batch normalisation of (N, C, ...). In training by the batch's statistics, which move the running ones (if they "
      "are Parameters) by `momentum`.");
  m.def(
      "_l2_normalize",
      [](const Tensor& x, const Ints& axis, double eps) { return ops::l2_normalize(x, axis.values, eps); }, "x"_a,
      "axis"_a, "epsilon"_a);
  m.def(
      "lrn",
      [](const Tensor& x, std::int64_t radius, double bias, double alpha, double beta, const std::string& region) {
        UNDERTOW_CHECK(region == "ACROSS_CHANNELS", ValueError, "lrn: norm_region must be 'ACROSS_CHANNELS', got '{}'",
                       region);
        return ops::lrn(x, radius, bias, alpha, beta);
      },
      "x"_a, "depth_radius"_a = 5, "bias"_a = 1.0, "alpha"_a = 1.0, "beta"_a = 0.5, "norm_region"_a = "ACROSS_CHANNELS",
      "Local response normalisation across channels.");
  m.def(
      "bias_add", [](const Tensor& x, const Tensor& b) { return ops::bias_add(x, b); }, "input_x"_a, "bias"_a,
      "x + bias with one value a channel (axis 1).");
  m.def("_bias_add", &ops::bias_add, "x"_a, "bias"_a, "channels_last"_a);
}

}  // namespace undertow::python
