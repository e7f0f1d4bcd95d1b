// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/ops.h"
#include "undertow/train/optimizer.h"

namespace undertow::nn {

AdamCell::AdamCell(const Params& params, const AdamOptions& o, const std::string& cls)
    : OptimizerCell(cls, params, o.learning_rate, o.weight_decay, o.loss_scale), options_(o) {
  check(o.beta1 > 0 && o.beta1 < 1, "beta1", "between 0 and 1", o.beta1);
  check(o.beta2 > 0 && o.beta2 < 1, "beta2", "between 0 and 1", o.beta2);
  check(o.eps > 0, "eps", "greater than 0", o.eps);
  const Shape shape = cls == "Adam" ? Shape{} : Shape{1};
  beta1_power_ = scalar_state("beta1_power", 1, shape);
  beta2_power_ = scalar_state("beta2_power", 1, shape);
  moment1_ = slots("moment1");
  moment2_ = slots("moment2");
  if (o.use_amsgrad) vhat_ = slots("vhat");
}

void AdamCell::construct_update(const std::vector<Tensor>& grads) {
  const double b1 = options_.beta1, b2 = options_.beta2;
  const Tensor power1 = ops::mul(beta1_power_, b1), power2 = ops::mul(beta2_power_, b2);
  const Tensor root = ops::reshape(ops::sqrt(ops::sub(1.0, power2)), {}),
               correction = ops::reshape(ops::sub(1.0, power1), {});
  Tensor rate;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters()[i];
    const Tensor& g = grads[i];
    if (i == 0 || grouped_lr()) rate = ops::div(ops::mul(lr(i), root), correction);
    const Tensor scaled = ops::mul(g, 1.0 - b1);
    const Tensor m = ops::add(ops::mul(moment1_[i], b1), scaled);
    const Tensor v = ops::add(ops::mul(moment2_[i], b2), ops::mul(ops::square(g), 1.0 - b2));
    const Tensor direction = options_.use_nesterov ? ops::add(ops::mul(m, b1), scaled) : m;
    Tensor scale = v;
    if (options_.use_amsgrad) {
      scale = ops::maximum(vhat_[i], v);
      ops::assign(vhat_[i], scale);
    }
    ops::assign(moment1_[i], m);
    ops::assign(moment2_[i], v);
    ops::assign(p, ops::sub(p, ops::div(ops::mul(rate, direction), ops::add(ops::sqrt(scale), options_.eps))));
  }
  ops::assign(beta1_power_, power1);
  ops::assign(beta2_power_, power2);
}

}  // namespace undertow::nn
