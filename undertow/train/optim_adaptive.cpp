// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/optim_adaptive.h"

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace {

/// decay * average + (1 - decay) * value
Tensor moving(const Tensor& average, double decay, const Tensor& value) {
  return ops::add(ops::mul(average, decay), ops::mul(value, 1.0 - decay));
}

Tensor norm(const Tensor& x) { return ops::sqrt(ops::reduce_sum(ops::square(x))); }

void step_down(const Parameter& p, const Tensor& rate, const Tensor& direction) {
  ops::assign(p, ops::sub(p, ops::mul(rate, direction)));
}

}  // namespace

AdamWeightDecayCell::AdamWeightDecayCell(const Params& params, const AdamWeightDecayOptions& o)
    : OptimizerCell("AdamWeightDecay", params, o.learning_rate, o.weight_decay), options_(o) {
  check(o.beta1 > 0 && o.beta1 < 1, "beta1", "between 0 and 1", o.beta1);
  check(o.beta2 > 0 && o.beta2 < 1, "beta2", "between 0 and 1", o.beta2);
  check(o.eps > 0, "eps", "greater than 0", o.eps);
  m_ = slots("adam_m");
  v_ = slots("adam_v");
}

void AdamWeightDecayCell::construct_update(const std::vector<Tensor>& grads) {
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters()[i];
    const Tensor m = moving(m_[i], options_.beta1, grads[i]);
    const Tensor v = moving(v_[i], options_.beta2, ops::square(grads[i]));
    Tensor step = ops::div(m, ops::add(ops::sqrt(v), options_.eps));
    if (const Tensor decay = weight_decay(i); decay.defined()) step = ops::add(step, ops::mul(decay, p));
    ops::assign(m_[i], m);
    ops::assign(v_[i], v);
    step_down(p, lr(i), step);
  }
}

LambCell::LambCell(const Params& params, const LambOptions& o)
    : OptimizerCell("Lamb", params, o.learning_rate, o.weight_decay), options_(o) {
  check(o.beta1 > 0 && o.beta1 < 1, "beta1", "between 0 and 1", o.beta1);
  check(o.beta2 > 0 && o.beta2 < 1, "beta2", "between 0 and 1", o.beta2);
  check(o.eps > 0, "eps", "greater than 0", o.eps);
  m_ = slots("lamb_m");
  v_ = slots("lamb_v");
}

void LambCell::construct_update(const std::vector<Tensor>& grads) {
  // Both corrections follow from the step, so that there are no powers to keep.
  const Tensor t = ops::add(ops::cast(ops::reshape(global_step_param(), {}), DType::kFloat32), 1.0);
  const Tensor correct1 = ops::sub(1.0, ops::pow(options_.beta1, t)),
               correct2 = ops::sub(1.0, ops::pow(options_.beta2, t));
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters()[i];
    const Tensor m = moving(m_[i], options_.beta1, grads[i]);
    const Tensor v = moving(v_[i], options_.beta2, ops::square(grads[i]));
    Tensor step = ops::div(ops::div(m, correct1), ops::add(ops::sqrt(ops::div(v, correct2)), options_.eps));
    if (const Tensor decay = weight_decay(i); decay.defined()) step = ops::add(step, ops::mul(decay, p));
    const Tensor of_p = norm(p), of_step = norm(step);
    const Tensor usable = ops::logical_and(ops::greater(of_p, 0.0), ops::greater(of_step, 0.0));
    const Tensor ratio = ops::select(usable, ops::div(of_p, of_step), 1.0);
    ops::assign(m_[i], m);
    ops::assign(v_[i], v);
    step_down(p, ops::mul(lr(i), ratio), step);
  }
}

AdaMaxCell::AdaMaxCell(const Params& params, const AdaMaxOptions& o)
    : OptimizerCell("AdaMax", params, o.learning_rate, o.weight_decay, o.loss_scale), options_(o) {
  check(o.beta1 > 0 && o.beta1 < 1, "beta1", "between 0 and 1", o.beta1);
  check(o.beta2 > 0 && o.beta2 < 1, "beta2", "between 0 and 1", o.beta2);
  check(o.eps > 0, "eps", "greater than 0", o.eps);
  beta1_power_ = scalar_state("beta1_power", 1, Shape{1});
  moment1_ = slots("moment1");
  moment2_ = slots("moment2");
}

void AdaMaxCell::construct_update(const std::vector<Tensor>& grads) {
  const Tensor power = ops::mul(beta1_power_, options_.beta1), correction = ops::reshape(ops::sub(1.0, power), {});
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Tensor m = moving(moment1_[i], options_.beta1, grads[i]);
    const Tensor v = ops::maximum(ops::mul(moment2_[i], options_.beta2), ops::abs(grads[i]));
    ops::assign(moment1_[i], m);
    ops::assign(moment2_[i], v);
    step_down(parameters()[i], ops::div(lr(i), correction), ops::div(m, ops::add(v, options_.eps)));
  }
  ops::assign(beta1_power_, power);
}

AdagradCell::AdagradCell(const Params& params, const AdagradOptions& o)
    : OptimizerCell("Adagrad", params, o.learning_rate, o.weight_decay, o.loss_scale), update_slots_(o.update_slots) {
  check(o.accum >= 0, "accum", "at least 0", o.accum);
  accum_ = slots("accum", o.accum);
}

void AdagradCell::construct_update(const std::vector<Tensor>& grads) {
  for (std::size_t i = 0; i < grads.size(); ++i) {
    Tensor h = accum_[i];
    if (update_slots_) {
      h = ops::add(h, ops::square(grads[i]));
      ops::assign(accum_[i], h);
    }
    step_down(parameters()[i], lr(i), ops::div(grads[i], ops::sqrt(h)));
  }
}

AdadeltaCell::AdadeltaCell(const Params& params, const AdadeltaOptions& o)
    : OptimizerCell("Adadelta", params, o.learning_rate, o.weight_decay, o.loss_scale), options_(o) {
  check(o.rho >= 0 && o.rho <= 1, "rho", "from 0 to 1", o.rho);
  check(o.epsilon >= 0, "epsilon", "at least 0", o.epsilon);
  accum_ = slots("accum");
  accum_update_ = slots("accum_update");
}

void AdadeltaCell::construct_update(const std::vector<Tensor>& grads) {
  const double rho = options_.rho, eps = options_.epsilon;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Tensor accum = moving(accum_[i], rho, ops::square(grads[i]));
    const Tensor step =
        ops::mul(ops::div(ops::sqrt(ops::add(accum_update_[i], eps)), ops::sqrt(ops::add(accum, eps))), grads[i]);
    ops::assign(accum_[i], accum);
    ops::assign(accum_update_[i], moving(accum_update_[i], rho, ops::square(step)));
    step_down(parameters()[i], lr(i), step);
  }
}

RMSPropCell::RMSPropCell(const Params& params, const RMSPropOptions& o)
    : OptimizerCell("RMSProp", params, o.learning_rate, o.weight_decay, o.loss_scale), options_(o) {
  check(o.decay >= 0, "decay", "at least 0", o.decay);
  check(o.momentum >= 0, "momentum", "at least 0", o.momentum);
  check(o.epsilon > 0, "epsilon", "greater than 0", o.epsilon);
  if (o.centered) mean_grad_ = slots("mean_grad");
  mean_square_ = slots("mean_square", 1);
  moment_ = slots("moment");
}

void RMSPropCell::construct_update(const std::vector<Tensor>& grads) {
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters()[i];
    const Tensor& g = grads[i];
    const Tensor square = moving(mean_square_[i], options_.decay, ops::square(g));
    Tensor variance = square;
    if (options_.centered) {
      const Tensor mean = moving(mean_grad_[i], options_.decay, g);
      variance = ops::sub(square, ops::square(mean));
      ops::assign(mean_grad_[i], mean);
    }
    const Tensor scaled = ops::div(ops::mul(lr(i), g), ops::sqrt(ops::add(variance, options_.epsilon)));
    const Tensor moment = ops::add(ops::mul(moment_[i], options_.momentum), scaled);
    ops::assign(mean_square_[i], square);
    ops::assign(moment_[i], moment);
    ops::assign(p, ops::sub(p, moment));
  }
}

AdaFactorCell::AdaFactorCell(const Params& params, const AdaFactorOptions& o)
    : OptimizerCell("AdaFactor", params, o.learning_rate.value_or(0.0), o.weight_decay, o.loss_scale), options_(o) {
  UNDERTOW_CHECK(!o.learning_rate || !o.relative_step, ValueError,
                 "AdaFactor: 'learning_rate' and 'relative_step' exclude each other");
  UNDERTOW_CHECK(o.learning_rate || o.relative_step, ValueError,
                 "AdaFactor: without 'learning_rate', 'relative_step' must be on");
  UNDERTOW_CHECK(!o.warmup_init || o.relative_step, ValueError, "AdaFactor: 'warmup_init' needs 'relative_step'");
  check(o.eps1 >= 0, "eps", "at least 0", o.eps1);
  check(o.eps2 >= 0, "eps", "at least 0", o.eps2);
  check(o.clip_threshold >= 0, "clip_threshold", "at least 0", o.clip_threshold);
  check(o.decay_rate > 0 && o.decay_rate < 1, "decay_rate", "between 0 and 1", o.decay_rate);
  check(o.weight_decay >= 0 && o.weight_decay < 1, "weight_decay", "at least 0 and below 1", o.weight_decay);
  check(o.beta1 >= 0, "beta1", "at least 0", o.beta1);
  if (o.learning_rate && !o.learning_rate->is_number()) options_.scale_parameter = false;
  if (o.beta1 > 0) exp_avg_ = slots("exp_avg");
  // A matrix keeps the means of its rows and columns, anything else the whole; what is not used has one element.
  const auto state = [this](const std::string& kind, auto shape_of) {
    std::vector<Parameter> out;
    for (const Parameter& p : parameters()) {
      Shape shape;
      for (const std::int64_t d : shape_of(std::vector<std::int64_t>(p.shape().begin(), p.shape().end())))
        shape.push_back(d);
      out.push_back(scalar_state(kind + p.name(), 0, shape));
    }
    return out;
  };
  using Dims = std::vector<std::int64_t>;
  row_ = state("exp_avg_sq_row_", [](Dims d) { return d.size() < 2 ? Dims{1} : Dims(d.begin(), d.end() - 1); });
  col_ = state("exp_avg_sq_col_", [](Dims d) {
    if (d.size() < 2) return Dims{1};
    d.erase(d.end() - 2);
    return d;
  });
  square_ = state("exp_avg_sq_", [](Dims d) { return d.size() < 2 ? d : Dims{1}; });
  step_ = scalar_state("afactor_step", 0, Shape{1});
}

void AdaFactorCell::construct_update(const std::vector<Tensor>& grads) {
  const Tensor next = ops::add(step_, 1.0), t = ops::reshape(next, {});
  ops::assign(step_, next);
  const Tensor beta2 = ops::sub(1.0, ops::pow(t, -options_.decay_rate)), rest = ops::sub(1.0, beta2);
  const auto moving_by = [&](const Parameter& average, const Tensor& value) {
    const Tensor updated = ops::add(ops::mul(average, beta2), ops::mul(value, rest));
    ops::assign(average, updated);
    return updated;
  };
  const auto rms = [](const Tensor& x) { return ops::sqrt(ops::reduce_mean(ops::square(x))); };
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters()[i];
    Tensor rate = lr(i);
    if (options_.relative_step) {
      const Tensor most = options_.warmup_init ? ops::mul(t, 1e-6) : ops::constant(1e-2, DType::kFloat32);
      rate = ops::minimum(most, ops::div(1.0, ops::sqrt(t)));
    }
    if (options_.scale_parameter) rate = ops::mul(rate, ops::maximum(rms(p), options_.eps2));
    const Tensor square = ops::add(ops::square(grads[i]), options_.eps1);
    Tensor step;
    if (p.ndim() >= 2) {
      const Tensor row = moving_by(row_[i], ops::reduce_mean(square, {-1}));
      const Tensor col = moving_by(col_[i], ops::reduce_mean(square, {-2}));
      const Tensor r = ops::rsqrt(ops::div(row, ops::reduce_mean(row, {-1}, true)));
      step = ops::mul(ops::mul(ops::expand_dims(r, -1), ops::expand_dims(ops::rsqrt(col), -2)), grads[i]);
    } else {
      step = ops::mul(ops::rsqrt(moving_by(square_[i], square)), grads[i]);
    }
    step = ops::mul(ops::div(step, ops::maximum(ops::div(rms(step), options_.clip_threshold), 1.0)), rate);
    if (!exp_avg_.empty()) {
      step = moving(exp_avg_[i], options_.beta1, step);
      ops::assign(exp_avg_[i], step);
    }
    Tensor kept = p;
    if (options_.weight_decay > 0) kept = ops::sub(p, ops::mul(ops::mul(p, options_.weight_decay), rate));
    ops::assign(p, ops::sub(kept, step));
  }
}

}  // namespace undertow::nn
