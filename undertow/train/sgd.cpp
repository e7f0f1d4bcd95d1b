// SPDX-License-Identifier: Apache-2.0
// SGD and Momentum.
#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/train/optimizer.h"

namespace undertow::nn {

SGDCell::SGDCell(const Params& params, const SGDOptions& o)
    : OptimizerCell("SGD", params, o.learning_rate, o.weight_decay, o.loss_scale), options_(o) {
  check(o.momentum >= 0, "momentum", "at least 0", o.momentum);
  check(o.dampening >= 0, "dampening", "at least 0", o.dampening);
  UNDERTOW_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0), ValueError,
                 "SGD: nesterov needs 'momentum' > 0 and 'dampening' 0, but they are {} and {}", o.momentum,
                 o.dampening);
  scalar_state("momentum", o.momentum);
  accum_ = slots("accum");
  stat_ = slots("stat", 1);
}

void SGDCell::construct_update(const std::vector<Tensor>& grads) {
  const Parameter momentum = get_param("momentum");
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters()[i];
    Tensor step = grads[i];
    if (options_.momentum != 0) {
      const Tensor &g = grads[i], old = ops::mul(momentum, accum_[i]);
      Tensor v;
      // Without dampening the first step needs no case of its own: the accumulator starts at 0.
      if (options_.dampening == 0) v = ops::add(old, g);
      else v = ops::select(ops::greater(stat_[i], 0.0), g, ops::add(old, ops::mul(g, 1.0 - options_.dampening)));
      step = options_.nesterov ? ops::add(g, ops::mul(momentum, v)) : v;
      ops::assign(accum_[i], v);
      ops::assign(stat_[i], ops::zeros_like(stat_[i]));
    }
    ops::assign(p, ops::sub(p, ops::mul(lr(i), step)));
  }
}

MomentumCell::MomentumCell(const Params& params, const Rate& learning_rate, double momentum, const MomentumOptions& o)
    : OptimizerCell("Momentum", params, learning_rate, o.weight_decay, o.loss_scale), nesterov_(o.use_nesterov) {
  check(momentum >= 0, "momentum", "at least 0", momentum);
  scalar_state("momentum", momentum);
  moments_ = slots("moments");
}

void MomentumCell::construct_update(const std::vector<Tensor>& grads) {
  const Parameter momentum = get_param("momentum");
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters()[i];
    const Tensor v = ops::add(ops::mul(momentum, moments_[i]), grads[i]);
    const Tensor step = nesterov_ ? ops::add(grads[i], ops::mul(momentum, v)) : v;
    ops::assign(moments_[i], v);
    ops::assign(p, ops::sub(p, ops::mul(lr(i), step)));
  }
}

}  // namespace undertow::nn
