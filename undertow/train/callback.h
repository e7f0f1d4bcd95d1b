// SPDX-License-Identifier: Apache-2.0
// train/callback.h: what runs on the host around epochs and steps.
//
// With the sink on, an "epoch" is one command of sink_size steps: the step hooks are called once for it, with
// cur_step_num already at its last step, and step_losses holds the loss of every step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "undertow/data/dataset.h"
#include "undertow/train/cell.h"
#include "undertow/train/metric.h"
#include "undertow/train/optimizer.h"

namespace undertow {

class Callback;

/// The state of a run, as callbacks see it.
struct CallbackParams {
  std::string mode;  ///< "train" or "eval"
  std::int64_t cur_epoch_num = 0, epoch_num = 0;
  std::int64_t cur_step_num = 0;  ///< all steps of the run, truly counted
  std::int64_t batch_num = 0;     ///< steps per epoch; sink_size with the sink on
  std::int64_t initial_step = 0;
  bool dataset_sink_mode = false;
  std::int64_t sink_size = -1;
  int device_number = 1;
  std::string parallel_mode = "stand_alone";
  std::string latest_ckpt_file;
  std::int64_t last_save_ckpt_step = 0;
  Ref<nn::Cell> network, train_network, eval_network, loss_fn;
  Ref<nn::OptimizerCell> optimizer;
  std::optional<data::Dataset> train_dataset, valid_dataset;
  nn::Value net_outputs;  ///< train: the loss of the last step; eval: (loss, output, label)
  std::vector<std::pair<std::string, double>> metrics;  ///< eval: results, once known; fit: also at its epoch's end
  /// fit: the metrics and "eval_loss" of the evaluation of this epoch, in on_train_epoch_end.
  std::vector<std::pair<std::string, double>> eval_results;
  std::vector<Ref<Callback>> list_callback;

  std::vector<double> step_losses;          ///< of the steps since the last step_begin
  std::vector<double> step_learning_rates;  ///< of the same steps
  std::vector<double> step_loss_scales;     ///< that they had; 1 without loss scaling
  std::vector<bool> step_skipped;           ///< whether their update was skipped: a gradient was not finite
  double wait_seconds = 0;                  ///< how long the steps of this epoch waited for data so far
};

class RunContext {
 public:
  explicit RunContext(CallbackParams* params) : params_(params) {}
  CallbackParams& original_args() const { return *params_; }
  /// Ends the run at the next step border, or at the end of the command with the sink on.
  void request_stop() { stop_ = true; }
  bool get_stop_requested() const { return stop_; }

 private:
  CallbackParams* params_;
  bool stop_ = false;
};

/// Base of callbacks: override what you need. The on_* hooks call the older short names where not overridden.
class Callback : public RefCounted {
 public:
  virtual void on_train_begin(RunContext& c) { begin(c); }
  virtual void on_train_epoch_begin(RunContext& c) { epoch_begin(c); }
  virtual void on_train_step_begin(RunContext& c) { step_begin(c); }
  virtual void on_train_step_end(RunContext& c) { step_end(c); }
  virtual void on_train_epoch_end(RunContext& c) { epoch_end(c); }
  virtual void on_train_end(RunContext& c) { end(c); }
  virtual void on_eval_begin(RunContext& c) { begin(c); }
  virtual void on_eval_epoch_begin(RunContext& c) { epoch_begin(c); }
  virtual void on_eval_step_begin(RunContext& c) { step_begin(c); }
  virtual void on_eval_step_end(RunContext& c) { step_end(c); }
  virtual void on_eval_epoch_end(RunContext& c) { epoch_end(c); }
  virtual void on_eval_end(RunContext& c) { end(c); }

  virtual void begin(RunContext&) {}
  virtual void epoch_begin(RunContext&) {}
  virtual void step_begin(RunContext&) {}
  virtual void step_end(RunContext&) {}
  virtual void epoch_end(RunContext&) {}
  virtual void end(RunContext&) {}

  /// Around the whole run; exit also runs when an error ends it.
  virtual void enter() {}
  virtual void exit() {}

  /// Whether the evaluations inside Model.fit call its hooks too.
  virtual bool follows_fit_evaluation() const { return true; }
  /// A non-finite loss ends the run with a ValueError naming epoch and step; that step changes nothing.
  virtual bool stops_on_non_finite() const { return false; }
  virtual std::string cls_name() const { return "Callback"; }
};

/// Prints "epoch: 1 step: 1, loss is 1.9112746715545654" every per_print_times steps (0: never), and stops on a loss
/// that is not finite.
class LossMonitorImpl : public Callback {
 public:
  /// Throws ValueError below 0.
  explicit LossMonitorImpl(std::int64_t per_print_times = 1);
  void on_train_begin(RunContext& context) override;
  void on_train_step_end(RunContext& context) override;
  bool stops_on_non_finite() const override { return true; }
  bool follows_fit_evaluation() const override { return false; }
  std::string cls_name() const override { return "LossMonitor"; }

 private:
  std::int64_t per_print_times_, last_print_ = 0;
};

/// Prints "Train epoch time: 236.206 ms, per step time: 47.241 ms" after each epoch, with the mean wait for data where
/// data_time is on. `data_size` stands in where the number of steps is not known. An evaluation inside of an epoch
/// (fit) has its own line and is no part of the training time.
class TimeMonitorImpl : public Callback {
 public:
  explicit TimeMonitorImpl(std::optional<std::int64_t> data_size = {}, bool data_time = false);
  void epoch_begin(RunContext& context) override;
  void epoch_end(RunContext& context) override;
  std::string cls_name() const override { return "TimeMonitor"; }

 private:
  std::optional<std::int64_t> data_size_;
  bool data_time_;
  std::int64_t train_start_ns_ = 0, eval_start_ns_ = 0, evaluated_ns_ = 0;
};

/// Hooks as functions.
struct LambdaHooks {
  using Hook = std::function<void(RunContext&)>;
  Hook on_train_epoch_begin, on_train_epoch_end, on_train_step_begin, on_train_step_end, on_train_begin, on_train_end;
  Hook on_eval_epoch_begin, on_eval_epoch_end, on_eval_step_begin, on_eval_step_end, on_eval_begin, on_eval_end;
};
class LambdaCallbackImpl : public Callback {
 public:
  explicit LambdaCallbackImpl(LambdaHooks hooks) : hooks_(std::move(hooks)) {}
  void on_train_begin(RunContext& c) override { call(hooks_.on_train_begin, c); }
  void on_train_epoch_begin(RunContext& c) override { call(hooks_.on_train_epoch_begin, c); }
  void on_train_step_begin(RunContext& c) override { call(hooks_.on_train_step_begin, c); }
  void on_train_step_end(RunContext& c) override { call(hooks_.on_train_step_end, c); }
  void on_train_epoch_end(RunContext& c) override { call(hooks_.on_train_epoch_end, c); }
  void on_train_end(RunContext& c) override { call(hooks_.on_train_end, c); }
  void on_eval_begin(RunContext& c) override { call(hooks_.on_eval_begin, c); }
  void on_eval_epoch_begin(RunContext& c) override { call(hooks_.on_eval_epoch_begin, c); }
  void on_eval_step_begin(RunContext& c) override { call(hooks_.on_eval_step_begin, c); }
  void on_eval_step_end(RunContext& c) override { call(hooks_.on_eval_step_end, c); }
  void on_eval_epoch_end(RunContext& c) override { call(hooks_.on_eval_epoch_end, c); }
  void on_eval_end(RunContext& c) override { call(hooks_.on_eval_end, c); }
  std::string cls_name() const override { return "LambdaCallback"; }

 private:
  static void call(const LambdaHooks::Hook& hook, RunContext& c) {
    if (hook) hook(c);
  }
  LambdaHooks hooks_;
};

// What C++ programs write: model.train(2, data, {.callbacks = {LossMonitor(100), TimeMonitor()}}). A class of one's own
// derives from Callback and is made with make_ref<Mine>(...).
class LossMonitor : public nn::Handle<LossMonitorImpl> {
 public:
  explicit LossMonitor(std::int64_t per_print_times = 1) : Handle(make_ref<LossMonitorImpl>(per_print_times)) {}
};
class TimeMonitor : public nn::Handle<TimeMonitorImpl> {
 public:
  explicit TimeMonitor(std::optional<std::int64_t> data_size = {}, bool data_time = false)
      : Handle(make_ref<TimeMonitorImpl>(data_size, data_time)) {}
};
class LambdaCallback : public nn::Handle<LambdaCallbackImpl> {
 public:
  explicit LambdaCallback(LambdaHooks hooks) : Handle(make_ref<LambdaCallbackImpl>(std::move(hooks))) {}
};

/// The mean of a step's (first) output, as NumPy would give it for its dtype.
double mean_loss(const nn::Value& outputs);
/// Where callbacks print whole lines; stdout unless a host language installs its own. Null restores stdout.
void set_line_printer(void (*printer)(std::string_view line));
void print_line(std::string_view line);
/// A number as Python's repr() writes it: the shortest decimal that reads back as the same double.
std::string python_repr(double value);

}  // namespace undertow
