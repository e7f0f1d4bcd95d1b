// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/monitors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "undertow/base/check.h"

namespace undertow {
namespace {

constexpr std::array kSmallerIsBetter = {"loss",
                                         "eval_loss",
                                         "mae",
                                         "mse",
                                         "perplexity",
                                         "hausdorff_distance",
                                         "mean_surface_distance",
                                         "root_mean_square_distance"};

/// The double that the shortest decimal of a float32 reads as: 0.1f gives 0.1.
double short_double(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr;
  double out = 0;
  std::from_chars(text, end, out);
  return out;
}

nn::OptimizerCell& optimizer_of(const CallbackParams& params, const char* cls) {
  UNDERTOW_CHECK(params.optimizer, ValueError, "{}: the run has no optimizer", cls);
  UNDERTOW_CHECK(params.optimizer->learning_rate().defined(), ValueError,
                 "{}: the learning rate must be one number for all parameters, not a list, a schedule or one a group",
                 cls);
  return *params.optimizer;
}

template <typename Options>
MonitorOptions monitored(const Options& o) {
  return {o.monitor, o.patience, o.mode, o.min_delta, o.verbose};
}

}  // namespace

MonitorCallback::MonitorCallback(const char* cls, MonitorOptions options) : cls_(cls), options_(std::move(options)) {
  UNDERTOW_CHECK(options_.patience >= 0, ValueError, "{}: 'patience' must be at least 0 but is {}", cls,
                 options_.patience);
  UNDERTOW_CHECK(options_.mode == "auto" || options_.mode == "min" || options_.mode == "max", ValueError,
                 "{}: 'mode' must be auto, min or max but is '{}'", cls, options_.mode);
  options_.min_delta = std::abs(options_.min_delta);
  smaller_ = options_.mode == "min" ||
             (options_.mode == "auto" &&
              std::find(kSmallerIsBetter.begin(), kSmallerIsBetter.end(), options_.monitor) != kSmallerIsBetter.end());
  best_ = (smaller_ ? 1 : -1) * std::numeric_limits<double>::infinity();
}

void MonitorCallback::on_train_begin(RunContext&) {
  best_ = (smaller_ ? 1 : -1) * std::numeric_limits<double>::infinity();
  wait_ = 0;
}

bool MonitorCallback::improves(double value, double than) const {
  return smaller_ ? value < than - options_.min_delta : value > than + options_.min_delta;
}

std::optional<double> MonitorCallback::current(const CallbackParams& params) const {
  if (options_.monitor == "loss") return mean_loss(params.net_outputs);
  if (params.eval_results.empty()) return std::nullopt;
  std::vector<std::string> known{"loss"};
  for (const auto& [name, value] : params.eval_results) {
    if (name == options_.monitor) return value;
    known.push_back(name);
  }
  throw ValueError(
      fmt::format("{}: there is no '{}' to watch; this run gives {}", cls_, options_.monitor, fmt::join(known, ", ")));
}

// ---- EarlyStopping
EarlyStoppingImpl::EarlyStoppingImpl(EarlyStoppingOptions options)
    : MonitorCallback("EarlyStopping", monitored(options)), early_(std::move(options)) {}

void EarlyStoppingImpl::on_train_begin(RunContext& context) {
  MonitorCallback::on_train_begin(context);
  stopped_epoch_ = 0;
  best_weights_.clear();
}

void EarlyStoppingImpl::keep(const CallbackParams& params) {
  best_weights_.clear();
  const Ref<nn::Cell>& network = params.train_network ? params.train_network : params.network;
  UNDERTOW_CHECK(network, ValueError, "EarlyStopping: the run has no network whose weights could be kept");
  for (const Parameter& p : network->get_parameters()) best_weights_.emplace_back(p, p.clone());
}

void EarlyStoppingImpl::on_train_epoch_end(RunContext& context) {
  const CallbackParams& p = context.original_args();
  const std::optional<double> value = current(p);
  if (!value) return;
  if (early_.restore_best_weights && best_weights_.empty()) keep(p);
  ++wait_;
  if (improves(*value, best_)) {
    best_ = *value;
    if (early_.restore_best_weights) keep(p);
    if (!early_.baseline || improves(*value, *early_.baseline)) wait_ = 0;
  }
  if (wait_ < options_.patience) return;
  stopped_epoch_ = p.cur_epoch_num;
  context.request_stop();
  if (best_weights_.empty()) return;
  if (options_.verbose) print_line("Restoring model weights from the end of the best epoch.");
  for (const auto& [parameter, weights] : best_weights_) parameter.assign(weights);
}

void EarlyStoppingImpl::on_train_end(RunContext&) {
  if (stopped_epoch_ > 0 && options_.verbose) print_line(fmt::format("Epoch {:05d}: early stopping", stopped_epoch_));
  best_weights_.clear();
}

// ---- ReduceLROnPlateau
ReduceLROnPlateauImpl::ReduceLROnPlateauImpl(ReduceLROnPlateauOptions options)
    : MonitorCallback("ReduceLROnPlateau", monitored(options)), reduce_(std::move(options)) {
  UNDERTOW_CHECK(reduce_.factor > 0 && reduce_.factor < 1, ValueError,
                 "ReduceLROnPlateau: 'factor' must be between 0 and 1 but is {}", reduce_.factor);
  UNDERTOW_CHECK(reduce_.cooldown >= 0, ValueError, "ReduceLROnPlateau: 'cooldown' must be at least 0 but is {}",
                 reduce_.cooldown);
}

void ReduceLROnPlateauImpl::on_train_begin(RunContext& context) {
  MonitorCallback::on_train_begin(context);
  cooldown_ = 0;
}

void ReduceLROnPlateauImpl::on_train_epoch_end(RunContext& context) {
  const CallbackParams& p = context.original_args();
  nn::OptimizerCell& optimizer = optimizer_of(p, "ReduceLROnPlateau");
  const std::optional<double> value = current(p);
  if (!value) return;
  if (cooldown_ > 0) {
    --cooldown_;
    wait_ = 0;
  }
  if (improves(*value, best_)) {
    best_ = *value;
    wait_ = 0;
    return;
  }
  if (cooldown_ > 0 || ++wait_ < options_.patience) return;
  const double rate = optimizer.get_lr();
  if (rate > reduce_.min_lr) {
    optimizer.set_lr(std::max(rate * reduce_.factor, reduce_.min_lr));
    if (options_.verbose)
      print_line(fmt::format("Epoch {:05d}: ReduceLROnPlateau reducing learning rate to {}.", p.cur_epoch_num,
                             python_repr(short_double(optimizer.get_lr()))));
  }
  cooldown_ = reduce_.cooldown;
  wait_ = 0;
}

// ---- LearningRateScheduler
LearningRateSchedulerImpl::LearningRateSchedulerImpl(Function function) : function_(std::move(function)) {
  UNDERTOW_CHECK(function_, TypeError, "LearningRateScheduler: 'learning_rate_function' must be a function");
}

void LearningRateSchedulerImpl::step_end(RunContext& context) {
  const CallbackParams& p = context.original_args();
  nn::OptimizerCell& optimizer = optimizer_of(p, "LearningRateScheduler");
  const double rate = short_double(optimizer.get_lr()), next = function_(rate, p.cur_step_num);
  if (std::abs(next - rate) > 1e-10 * std::max(std::abs(next), std::abs(rate))) optimizer.set_lr(next);
}

// ---- History
void HistoryImpl::begin(RunContext&) { epoch_.clear(); }

void HistoryImpl::epoch_end(RunContext& context) {
  const CallbackParams& p = context.original_args();
  epoch_.push_back(p.cur_epoch_num);
  history_["net_output"].push_back(mean_loss(p.net_outputs));
  for (const auto& [name, value] : p.metrics) history_[name].push_back(value);
}

}  // namespace undertow
