// SPDX-License-Identifier: Apache-2.0
// train/monitors.h: callbacks that watch a value and act on it: EarlyStopping, ReduceLROnPlateau,
// LearningRateScheduler, History.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "undertow/train/callback.h"

namespace undertow {

/// What is watched, and what counts as better.
struct MonitorOptions {
  /// "loss": the training loss at the epoch's end; else a name in eval_results, which Model.fit gives.
  std::string monitor = "eval_loss";
  std::int64_t patience = 0;  ///< epochs without improvement
  std::string mode = "auto";  ///< "min", "max", or "auto": min for losses and distances, max otherwise
  double min_delta = 0;       ///< smaller changes are none; its sign does not matter
  bool verbose = false;       ///< says on standard output what is done
};

/// Base: the watched value of each epoch. An epoch without evaluation is passed over; a name that an evaluation does
/// not give is a ValueError naming those it gives.
class MonitorCallback : public Callback {
 public:
  void on_train_begin(RunContext& context) override;
  bool follows_fit_evaluation() const override { return false; }

 protected:
  MonitorCallback(const char* cls, MonitorOptions options);
  std::optional<double> current(const CallbackParams& params) const;
  bool improves(double value, double than) const;
  const char* cls_;
  MonitorOptions options_;
  bool smaller_;
  double best_ = 0;
  std::int64_t wait_ = 0;
};

struct EarlyStoppingOptions {
  std::string monitor = "eval_loss";
  double min_delta = 0;
  std::int64_t patience = 0;
  bool verbose = false;
  std::string mode = "auto";
  /// The patience starts anew only with values better than this.
  std::optional<double> baseline;
  bool restore_best_weights = false;  ///< of the epoch with the best value, when it stops
};
/// Ends the run after `patience` epochs without improvement.
class EarlyStoppingImpl : public MonitorCallback {
 public:
  explicit EarlyStoppingImpl(EarlyStoppingOptions options = {});
  void on_train_begin(RunContext& context) override;
  void on_train_epoch_end(RunContext& context) override;
  void on_train_end(RunContext& context) override;
  std::int64_t stopped_epoch() const { return stopped_epoch_; }
  std::string cls_name() const override { return "EarlyStopping"; }

 private:
  void keep(const CallbackParams& params);

  EarlyStoppingOptions early_;
  std::int64_t stopped_epoch_ = 0;
  std::vector<std::pair<Parameter, Tensor>> best_weights_;
};

struct ReduceLROnPlateauOptions {
  std::string monitor = "eval_loss";
  double factor = 0.1;
  std::int64_t patience = 10;
  bool verbose = false;
  std::string mode = "auto";
  double min_delta = 1e-4;
  std::int64_t cooldown = 0;  ///< epochs after a reduction that do not count
  double min_lr = 0;
};
/// Multiplies the learning rate by `factor` after `patience` epochs without improvement. The rate is state of the step,
/// so this works between sunk commands. A rate that is a list, a schedule or differs between groups is a ValueError.
class ReduceLROnPlateauImpl : public MonitorCallback {
 public:
  explicit ReduceLROnPlateauImpl(ReduceLROnPlateauOptions options = {});
  void on_train_begin(RunContext& context) override;
  void on_train_epoch_end(RunContext& context) override;
  std::string cls_name() const override { return "ReduceLROnPlateau"; }

 private:
  ReduceLROnPlateauOptions reduce_;
  std::int64_t cooldown_ = 0;
};

/// Sets the learning rate to function(rate, cur_step_num) after each step, or after each command with the sink on.
class LearningRateSchedulerImpl : public Callback {
 public:
  using Function = std::function<double(double rate, std::int64_t step)>;
  explicit LearningRateSchedulerImpl(Function function);
  void step_end(RunContext& context) override;
  bool follows_fit_evaluation() const override { return false; }
  std::string cls_name() const override { return "LearningRateScheduler"; }

 private:
  Function function_;
};

/// Keeps, for each epoch, the mean output ("net_output") and the results of evaluation.
class HistoryImpl : public Callback {
 public:
  void begin(RunContext& context) override;
  void epoch_end(RunContext& context) override;
  bool follows_fit_evaluation() const override { return false; }
  const std::vector<std::int64_t>& epoch() const { return epoch_; }
  const std::map<std::string, std::vector<double>>& history() const { return history_; }
  std::string cls_name() const override { return "History"; }

 private:
  std::vector<std::int64_t> epoch_;
  std::map<std::string, std::vector<double>> history_;
};

/// The handle of a callback that is made from options.
template <typename C, typename Options>
class CallbackOf : public nn::Handle<C> {
 public:
  explicit CallbackOf(Options options = {}) : nn::Handle<C>(make_ref<C>(std::move(options))) {}
};
using EarlyStopping = CallbackOf<EarlyStoppingImpl, EarlyStoppingOptions>;
using ReduceLROnPlateau = CallbackOf<ReduceLROnPlateauImpl, ReduceLROnPlateauOptions>;
using LearningRateScheduler = CallbackOf<LearningRateSchedulerImpl, LearningRateSchedulerImpl::Function>;
class History : public nn::Handle<HistoryImpl> {
 public:
  History() : Handle(make_ref<HistoryImpl>()) {}
};

}  // namespace undertow
