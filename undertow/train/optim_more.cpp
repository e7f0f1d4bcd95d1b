// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/optim_more.h"

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace {

Tensor sum_of_squares(const Tensor& x) { return ops::reduce_sum(ops::square(x)); }

}  // namespace

ASGDCell::ASGDCell(const Params& params, const ASGDOptions& o)
    : OptimizerCell("ASGD", params, o.learning_rate, o.weight_decay), options_(o) {
  for (const Parameter& p : parameters()) mu_.push_back(scalar_state("mu_" + p.name(), 1));
  for (const Parameter& p : parameters()) eta_.push_back(scalar_state("eta_" + p.name(), 0));
  ax_ = slots("ax_");
}

void ASGDCell::construct_update(const std::vector<Tensor>& grads) {
  const Tensor t = ops::add(ops::cast(ops::reshape(global_step_param(), {}), DType::kFloat32), 1.0);
  const Tensor first = ops::equal(t, 1.0);
  const Tensor next_mu = ops::div(1.0, ops::maximum(ops::sub(t, options_.t0), 1.0));
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters()[i];
    const Tensor rate = lr(i), eta = ops::select(first, rate, eta_[i]), mu = mu_[i];
    const Tensor w = ops::sub(ops::mul(p, ops::sub(1.0, ops::mul(eta, options_.lambd))), ops::mul(eta, grads[i]));
    const Tensor averaged = ops::add(ax_[i], ops::mul(ops::sub(w, ax_[i]), mu));
    ops::assign(ax_[i], ops::select(ops::not_equal(mu, 1.0), averaged, w));
    ops::assign(p, w);
    ops::assign(eta_[i],
                ops::div(rate, ops::pow(ops::add(ops::mul(ops::mul(rate, t), options_.lambd), 1.0), options_.alpha)));
    ops::assign(mu_[i], next_mu);
  }
}

RpropCell::RpropCell(const Params& params, const RpropOptions& o)
    : OptimizerCell("Rprop", params, o.learning_rate, o.weight_decay), options_(o) {
  check(o.etas.first > 0 && o.etas.first < 1, "etas[0]", "between 0 and 1", o.etas.first);
  check(o.etas.second > 1, "etas[1]", "greater than 1", o.etas.second);
  UNDERTOW_CHECK(o.step_sizes.first <= o.step_sizes.second, ValueError,
                 "Rprop: 'step_sizes' must be (smallest, largest), but is ({}, {})", o.step_sizes.first,
                 o.step_sizes.second);
  prev_ = slots("prev");
  step_size_ = slots("step_size");
}

void RpropCell::construct_update(const std::vector<Tensor>& grads) {
  const auto [minus, plus] = options_.etas;
  const Tensor first = ops::equal(ops::reshape(global_step_param(), {}), 0);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters()[i];
    const Tensor turn = ops::mul(grads[i], prev_[i]);
    const Tensor turned = ops::less(turn, 0.0);
    const Tensor factor = ops::select(ops::greater(turn, 0.0), plus, ops::select(turned, minus, ops::ones_like(turn)));
    const Tensor before = ops::select(first, lr(i), step_size_[i]);
    const Tensor size = ops::clip(ops::mul(before, factor), options_.step_sizes.first, options_.step_sizes.second);
    const Tensor used = ops::select(turned, 0.0, grads[i]);
    ops::assign(p, ops::sub(p, ops::mul(ops::sign(used), size)));
    ops::assign(prev_[i], used);
    ops::assign(step_size_[i], size);
  }
}

FTRLCell::FTRLCell(const Params& params, const FTRLOptions& o)
    : OptimizerCell("FTRL", params, o.learning_rate, o.weight_decay, o.loss_scale), options_(o) {
  UNDERTOW_CHECK(!grouped_lr(), ValueError, "FTRL: groups cannot have learning rates of their own");
  decay_all();
  check(o.initial_accum >= 0, "initial_accum", "at least 0", o.initial_accum);
  check(o.learning_rate > 0, "learning_rate", "greater than 0", o.learning_rate);
  check(o.lr_power <= 0, "lr_power", "at most 0", o.lr_power);
  check(o.l1 >= 0, "l1", "at least 0", o.l1);
  check(o.l2 >= 0, "l2", "at least 0", o.l2);
  moments_ = slots("moments", o.initial_accum);
  linear_ = slots("linear");
}

void FTRLCell::construct_update(const std::vector<Tensor>& grads) {
  const auto power = [&](const Tensor& x) {
    return options_.lr_power == -0.5 ? ops::sqrt(x) : ops::pow(x, -options_.lr_power);
  };
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters()[i];
    const Tensor rate = lr(i);
    const Tensor n = ops::add(moments_[i], ops::square(grads[i])), np = power(n);
    const Tensor sigma = ops::div(ops::sub(np, power(moments_[i])), rate);
    const Tensor z = ops::sub(ops::add(linear_[i], grads[i]), ops::mul(sigma, p));
    const Tensor w =
        ops::div(ops::sub(ops::mul(ops::sign(z), options_.l1), z), ops::add(ops::div(np, rate), 2 * options_.l2));
    ops::assign(moments_[i], n);
    ops::assign(linear_[i], z);
    ops::assign(p, ops::select(ops::greater(ops::abs(z), options_.l1), w, 0.0));
  }
}

ProximalAdagradCell::ProximalAdagradCell(const Params& params, const ProximalAdagradOptions& o)
    : OptimizerCell("ProximalAdagrad", params, o.learning_rate, o.weight_decay, o.loss_scale), options_(o) {
  check(o.accum >= 0, "accum", "at least 0", o.accum);
  check(o.l1 >= 0, "l1", "at least 0", o.l1);
  check(o.l2 >= 0, "l2", "at least 0", o.l2);
  accum_ = slots("accum", o.accum);
}

void ProximalAdagradCell::construct_update(const std::vector<Tensor>& grads) {
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters()[i];
    const Tensor h = ops::add(accum_[i], ops::square(grads[i]));
    const Tensor rate = ops::div(lr(i), ops::sqrt(h));
    Tensor w = ops::sub(p, ops::mul(rate, grads[i]));
    if (options_.l1 > 0)
      w = ops::mul(ops::sign(w), ops::maximum(ops::sub(ops::abs(w), ops::mul(rate, options_.l1)), 0.0));
    ops::assign(accum_[i], h);
    ops::assign(p, ops::div(w, ops::add(ops::mul(rate, options_.l2), 1.0)));
  }
}

LARSCell::LARSCell(Ref<OptimizerCell> optimizer, const LARSOptions& o)
    : OptimizerCell("LARS", *optimizer), inner_(std::move(optimizer)), options_(o) {
  check(o.epsilon >= 0, "epsilon", "at least 0", o.epsilon);
  check(o.coefficient >= 0, "coefficient", "at least 0", o.coefficient);
  std::function<bool(const Parameter&)> applies = o.lars_filter;
  if (!applies)
    applies = [](const Parameter& p) {
      return p.name().find("LayerNorm") == std::string::npos && p.name().find("bias") == std::string::npos;
    };
  for (const Parameter& p : parameters()) applies_.push_back(applies(p));
  insert_child("opt", inner_);
}

void LARSCell::construct_update(const std::vector<Tensor>& grads) {
  std::vector<Tensor> scaled = scale_grad(grads);
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    if (!applies_[i]) continue;
    const Parameter& p = parameters()[i];
    Tensor& g = scaled[i];
    const Tensor of_w = ops::sqrt(sum_of_squares(p)), of_g = ops::sqrt(sum_of_squares(g));
    Tensor below = ops::add(of_g, options_.epsilon);
    if (Tensor decay = weight_decay(i); decay.defined()) {
      if (loss_scale() != 1) decay = ops::div(decay, loss_scale());
      below = ops::add(below, ops::mul(decay, of_w));
      g = ops::add(g, ops::mul(decay, p));
    }
    const Tensor usable = ops::logical_and(ops::greater(of_w, 0.0), ops::greater(of_g, 0.0));
    Tensor ratio = ops::select(usable, ops::div(ops::mul(of_w, options_.coefficient), below), 1.0);
    if (options_.use_clip) ratio = ops::minimum(ops::div(ratio, lr(i)), 1.0);
    g = ops::mul(ratio, g);
  }
  inner_->update(scaled);
}

}  // namespace undertow::nn
