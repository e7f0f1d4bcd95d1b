// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/optimizer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <set>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/runtime/trace.h"

namespace undertow::nn {
namespace {

Tensor f32_scalar(double value) { return Tensor::scalar(static_cast<float>(value)); }

bool skips_decay(const std::string& name) {
  return name.find("beta") != std::string::npos || name.find("gamma") != std::string::npos;
}

bool compiling() {
  const runtime::Trace* trace = runtime::current_trace();
  return trace && trace->mode() == runtime::Trace::Mode::kCompile;
}

}  // namespace

OptimizerCell::OptimizerCell(std::string cls, const Params& params, const Rate& learning_rate, const Rate& weight_decay,
                             double loss_scale)
    : cls_(std::move(cls)), loss_scale_(loss_scale) {
  set_auto_prefix(false);
  check(loss_scale > 0, "loss_scale", "greater than 0", loss_scale);
  if (loss_scale != 1) loss_scale_tensor_ = f32_scalar(loss_scale);
  global_step_ = Parameter(Tensor::zeros(Shape{1}, DType::kInt32), "global_step", false);
  insert_param("global_step", global_step_);
  collect(params, learning_rate, weight_decay);
}

OptimizerCell::OptimizerCell(std::string cls, OptimizerCell& inner)
    : cls_(std::move(cls)),
      parameters_(inner.parameters_),
      rates_(inner.rates_),
      decays_(inner.decays_),
      rate_of_(inner.rate_of_),
      decay_of_(inner.decay_of_),
      decayed_(inner.decayed_),
      centralized_(inner.centralized_),
      grouped_(inner.grouped_),
      grouped_lr_(inner.grouped_lr_),
      ordered_(inner.ordered_),
      dynamic_lr_(inner.dynamic_lr_),
      loss_scale_(inner.loss_scale_),
      loss_scale_tensor_(inner.loss_scale_tensor_),
      listed_steps_(inner.listed_steps_),
      global_step_(inner.global_step_),
      recorded_(inner.recorded_) {
  set_auto_prefix(false);
  insert_param("global_step", global_step_);
  inner.decayed_.assign(inner.decayed_.size(), false);
  inner.loss_scale_tensor_ = {};
}

void OptimizerCell::decay_all() {
  for (std::size_t i = 0; i < decayed_.size(); ++i) {
    const DecayState& d = decays_[decay_of_[i]];
    decayed_[i] = d.schedule || d.value > 0;
  }
}

void OptimizerCell::check(bool ok, const char* argument, const char* must, double value) const {
  UNDERTOW_CHECK(ok && std::isfinite(value), ValueError, "{}: '{}' must be {} but is {}", cls_, argument, must, value);
}

/// Takes the groups apart: parameters with their rates, decays and flags.
void OptimizerCell::collect(const Params& params, const Rate& learning_rate, const Rate& weight_decay) {
  grouped_ = params.grouped();
  std::vector<std::string> rate_names;
  const auto rate_index = [&](const Rate& rate, std::string name) {
    rate_names.push_back(std::move(name));
    return add_rate(rate, rate_names.back());
  };
  std::optional<std::size_t> common_rate, common_decay;
  const std::vector<Parameter>* wanted = nullptr;
  for (std::size_t i = 0; i < params.groups().size(); ++i) {
    const ParamGroup& g = params.groups()[i];
    if (!g.order_params.empty()) {
      UNDERTOW_CHECK(g.params.empty() && !g.lr && !g.weight_decay, ValueError,
                     "{}: the group with 'order_params' must hold nothing else", cls_);
      wanted = &g.order_params;
      continue;
    }
    UNDERTOW_CHECK(!g.params.empty(), ValueError,
                   "{}: the list of parameters{} is empty; give it e.g. net.trainable_params()", cls_,
                   grouped_ ? fmt::format(" of group {}", i) : "");
    grouped_lr_ = grouped_lr_ || g.lr;
    if (!g.lr && !common_rate) common_rate = rate_index(learning_rate, "learning_rate");
    if (!g.weight_decay && !common_decay) common_decay = add_decay(weight_decay);
    const std::size_t rate = g.lr ? rate_index(*g.lr, fmt::format("learning_rate_group_{}", i)) : *common_rate;
    const std::size_t decay = g.weight_decay ? add_decay(*g.weight_decay) : *common_decay;
    const DecayState& d = decays_[decay];
    for (const Parameter& p : g.params) {
      parameters_.push_back(p);
      rate_of_.push_back(rate);
      decay_of_.push_back(decay);
      decayed_.push_back(d.schedule || d.value > 0);
      centralized_.push_back(g.grad_centralization);
    }
  }
  UNDERTOW_CHECK(!parameters_.empty(), ValueError, "{}: there are no parameters in the groups", cls_);
  if (!common_rate) add_rate(learning_rate, ""), rates_.pop_back();  // its value is checked all the same
  check_parameters();
  if (wanted) order(*wanted);
  register_rates(rate_names);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    insert_param(parameters_[i].name(), parameters_[i]);
    if (!grouped_ && skips_decay(parameters_[i].name())) decayed_[i] = false;
  }
}

void OptimizerCell::check_parameters() {
  std::set<const TensorImpl*> known;
  std::set<std::string> names;
  for (const Parameter& p : parameters_) {
    UNDERTOW_CHECK(p.defined() && p.is_parameter(), TypeError, "{}: the list holds something that is not a Parameter",
                   cls_);
    UNDERTOW_CHECK(known.insert(p.impl().get()).second, RuntimeError, "{}: parameter '{}' is in the list twice", cls_,
                   p.name());
    if (p.name().empty()) {
      static std::atomic<int> counter{0};
      p.set_name(fmt::format("{}{}", kGeneratedName, counter++));
    }
    UNDERTOW_CHECK(names.insert(p.name()).second, ValueError,
                   "{}: two parameters have the name '{}'; rename one of them", cls_, p.name());
  }
}

void OptimizerCell::order(const std::vector<Parameter>& wanted) {
  ordered_ = true;
  UNDERTOW_CHECK(wanted.size() == parameters_.size(), ValueError,
                 "{}: 'order_params' has {} parameters, but the groups have {}", cls_, wanted.size(),
                 parameters_.size());
  std::vector<std::size_t> from;
  for (const Parameter& p : wanted) from.push_back(position(p));
  UNDERTOW_CHECK(std::set<std::size_t>(from.begin(), from.end()).size() == from.size(), ValueError,
                 "{}: a parameter is in 'order_params' twice", cls_);
  const auto permute = [&from](auto& items) {
    auto before = items;
    for (std::size_t i = 0; i < from.size(); ++i) items[i] = before[from[i]];
  };
  permute(parameters_), permute(rate_of_), permute(decay_of_), permute(decayed_), permute(centralized_);
}

std::size_t OptimizerCell::add_rate(const Rate& rate, const std::string& name) {
  RateState state;
  if (rate.is_number()) {
    check(rate.value() >= 0, "learning_rate", "at least 0", rate.value());
    state.fixed = Parameter(f32_scalar(rate.value()), name, false);
  } else {
    dynamic_lr_ = true;
    if (rate.is_list()) {
      const auto list = make_ref<IteratorLRCell>(rate.values(), name);
      UNDERTOW_CHECK(listed_steps_ < 0 || listed_steps_ == list->steps(), ValueError,
                     "{}: the lists of learning rates must be equally long, but have {} and {} values", cls_,
                     listed_steps_, list->steps());
      listed_steps_ = list->steps();
      state.schedule = list;
    } else {
      state.schedule = rate.schedule();
    }
  }
  rates_.push_back(std::move(state));
  return rates_.size() - 1;
}

std::size_t OptimizerCell::add_decay(const Rate& rate) {
  UNDERTOW_CHECK(!rate.is_list(), TypeError, "{}: 'weight_decay' must be a number or a Cell, not a list", cls_);
  DecayState state;
  state.schedule = rate.schedule();
  if (!state.schedule) {
    check(rate.value() >= 0, "weight_decay", "at least 0", rate.value());
    state.value = rate.value();
    if (rate.value() != 0) state.scaled = f32_scalar(rate.value() * loss_scale_);
  } else {
    insert_child(fmt::format("weight_decay{}", decays_.empty() ? "" : std::to_string(decays_.size())), state.schedule);
  }
  decays_.push_back(std::move(state));
  return decays_.size() - 1;
}

/// Where some rate is dynamic and there are several, all are schedules.
void OptimizerCell::register_rates(const std::vector<std::string>& rate_names) {
  for (std::size_t i = 0; i < rates_.size(); ++i) {
    RateState& r = rates_[i];
    if (r.fixed.defined() && grouped_lr_ && dynamic_lr_) r.schedule = make_ref<ConstantLRCell>(r.fixed);
    if (r.schedule) {
      insert_child(rate_names[i], r.schedule);
      if (r.schedule->attribute_name().empty()) r.schedule->set_attribute_name(r.schedule->cls_name());
    }
    if (!r.schedule) insert_param(rate_names[i], r.fixed);
  }
  if (!dynamic_lr_) recorded_ = rate_param(0);
  else recorded_ = Parameter(f32_scalar(0), "learning_rate.used", false);
}

bool OptimizerCell::names(const Parameter& parameter) const {
  return std::none_of(parameters_.begin(), parameters_.end(),
                      [&](const Parameter& p) { return p.impl() == parameter.impl(); });
}

std::size_t OptimizerCell::position(const Parameter& parameter) const {
  const auto at = std::find_if(parameters_.begin(), parameters_.end(),
                               [&](const Parameter& p) { return p.impl() == parameter.impl(); });
  UNDERTOW_CHECK(at != parameters_.end(), ValueError, "{}: parameter '{}' is not one of this optimizer's", cls_,
                 parameter.name());
  return static_cast<std::size_t>(at - parameters_.begin());
}

// ---- A step

Tensor OptimizerCell::evaluate(const Ref<Cell>& schedule) {
  const std::vector<Tensor> out = schedule->call({global_step_}).tensors();
  UNDERTOW_CHECK(out.size() == 1 && out[0].size() == 1, ValueError, "{}: {} must give one number a step, but gave {}",
                 cls_, schedule->cls_name(), out.size() == 1 ? "shape " + out[0].shape().str() : "no Tensor");
  return ops::cast(ops::reshape(out[0], {}), DType::kFloat32);
}

Tensor OptimizerCell::lr(std::size_t i) {
  RateState& r = rates_[rate_of_[i]];
  if (!r.schedule) return r.fixed;
  if (!in_step_) return evaluate(r.schedule);
  if (!r.of_step.defined()) r.of_step = evaluate(r.schedule);
  return r.of_step;
}

Tensor OptimizerCell::weight_decay(std::size_t i) {
  if (!decayed_[i]) return {};
  DecayState& d = decays_[decay_of_[i]];
  if (!d.schedule) return d.scaled;
  if (in_step_ && d.of_step.defined()) return d.of_step;
  Tensor value = evaluate(d.schedule);
  if (loss_scale_tensor_.defined()) value = ops::mul(value, loss_scale_tensor_);
  if (in_step_) d.of_step = value;
  return value;
}

/// While it lives, a schedule is evaluated once, however many parameters use it.
class OptimizerCell::Step {
 public:
  explicit Step(OptimizerCell& optimizer) : optimizer_(optimizer) { optimizer.in_step_ = true; }
  ~Step() {
    optimizer_.in_step_ = false;
    for (RateState& r : optimizer_.rates_) r.of_step = {};
    for (DecayState& d : optimizer_.decays_) d.of_step = {};
  }
  Step(const Step&) = delete;

 private:
  OptimizerCell& optimizer_;
};

std::vector<Tensor> OptimizerCell::decay_weight(std::vector<Tensor> grads) {
  for (std::size_t i = 0; i < grads.size(); ++i)
    if (const Tensor decay = weight_decay(i); decay.defined())
      grads[i] = ops::add(grads[i], ops::mul(decay, parameters_[i]));
  return grads;
}

std::vector<Tensor> OptimizerCell::centralize(std::vector<Tensor> grads) const {
  for (std::size_t i = 0; i < grads.size(); ++i) {
    Tensor& g = grads[i];
    if (!centralized_[i] || g.ndim() < 2 || g.shape(1) % 16 != 0) continue;
    ops::Axes axes(static_cast<std::size_t>(g.ndim() - 1));
    std::iota(axes.begin(), axes.end(), 1);
    g = ops::sub(g, ops::reduce_mean(g, axes, true));
  }
  return grads;
}

std::vector<Tensor> OptimizerCell::scale_grad(std::vector<Tensor> grads) const {
  if (loss_scale_tensor_.defined())
    for (Tensor& g : grads) g = ops::div(g, loss_scale_tensor_);
  return grads;
}

std::vector<Tensor> OptimizerCell::prepare(std::vector<Tensor> grads) {
  return scale_grad(centralize(decay_weight(std::move(grads))));
}

void OptimizerCell::construct_update(const std::vector<Tensor>&) {
  throw RuntimeError(fmt::format("{} has no update rule: override construct", cls_name()));
}

void OptimizerCell::update(const std::vector<Tensor>& grads) { call({Value(Value::List(grads.begin(), grads.end()))}); }

void OptimizerCell::check_gradients(const std::vector<Tensor>& grads) const {
  UNDERTOW_CHECK(grads.size() == parameters_.size(), RuntimeError, "{}: got {} gradients for {} parameters", cls_,
                 grads.size(), parameters_.size());
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters_[i];
    UNDERTOW_CHECK(is_floating(p.dtype()), TypeError, "{}: parameter '{}' is {} and cannot be trained", cls_, p.name(),
                   name_of(p.dtype()));
    UNDERTOW_CHECK(grads[i].shape() == p.shape(), ShapeError,
                   "{}: the gradient of '{}' has shape {} but the parameter {}", cls_, p.name(), grads[i].shape().str(),
                   p.shape().str());
  }
  if (compiling() || listed_steps_ < 0) return;
  UNDERTOW_CHECK(global_step() < listed_steps_, ValueError,
                 "{}: 'learning_rate' is a list of {} values, one a step, and all of them were used; step {} needs "
                 "another one",
                 cls_, listed_steps_, global_step() + 1);
}

Value OptimizerCell::construct_values(const std::vector<Value>& args) {
  std::vector<Tensor> grads;
  for (const Value& a : args)
    for (Tensor& t : a.tensors()) grads.push_back(std::move(t));
  check_gradients(grads);
  // The square of a small gradient is 0 in float16.
  for (Tensor& g : grads)
    if (compute_type(g.dtype()) != g.dtype()) g = ops::cast(g, compute_type(g.dtype()));
  const Step step(*this);
  construct_update(prepare(std::move(grads)));
  if (counts_steps()) ops::assign(global_step_, ops::add(global_step_, 1));
  return true;
}

std::int64_t OptimizerCell::steps_left() const {
  return listed_steps_ < 0 ? -1 : std::max<std::int64_t>(listed_steps_ - global_step(), 0);
}

void OptimizerCell::record_lr() {
  if (dynamic_lr_) ops::assign(recorded_, lr(0));
}

double OptimizerCell::get_lr() { return lr(0).item_as_double(); }

Parameter OptimizerCell::learning_rate() const {
  return rates_.size() == 1 && !dynamic_lr_ ? rates_[0].fixed : Parameter();
}

void OptimizerCell::set_lr(double value) {
  check(value >= 0, "learning_rate", "at least 0", value);
  UNDERTOW_CHECK(learning_rate().defined(), ValueError,
                 "{}: the learning rate can be set only where it is one number for all parameters", cls_);
  learning_rate().assign(f32_scalar(value));
}

std::vector<Parameter> OptimizerCell::slots(const std::string& prefix, double value) {
  std::vector<Parameter> out;
  out.reserve(parameters_.size());
  for (const Parameter& p : parameters_) {
    const std::string name = prefix + "." + p.name();
    out.emplace_back(Tensor::full(p.shape(), value, compute_type(p.dtype())), name, false);
    insert_param(name, out.back());
  }
  return out;
}

Parameter OptimizerCell::scalar_state(const std::string& name, double value, const Shape& shape) {
  const Parameter p(Tensor::full(shape, value), name, false);
  insert_param(name, p);
  return p;
}

}  // namespace undertow::nn
