// SPDX-License-Identifier: Apache-2.0
// train/run.h: one call of Model.train or Model.eval: its commands, its callbacks, and what ends it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "undertow/runtime/session.h"
#include "undertow/train/callback.h"
#include "undertow/train/model.h"
#include "undertow/train/sink.h"

namespace undertow::train {

/// What a run reports to and listens to.
struct RunOptions {
  std::vector<Ref<Callback>> callbacks;
  PollHook poll;
  bool eager = false;
  bool nested = false;  ///< inside another run, which has entered the callbacks and leaves them
};

/// Number of batches; -1 where a source gives its rows only once. Throws ValueError with the numbers for 0 batches.
std::int64_t checked_size(const data::Dataset& dataset, const char* argument);

class Run {
 public:
  using MakeStep = std::function<std::unique_ptr<runtime::StepFunction>()>;

  Run(CallbackParams& params, const RunOptions& options, std::atomic<bool>& stop);
  ~Run();  ///< exit() of the callbacks that were entered
  Run(const Run&) = delete;

  /// `make` is called again when a callback changes `network`. Steps are counted on from `steps_run`, which follows.
  void make_step(MakeStep make, Ref<nn::Cell> network, std::int64_t& steps_run);

  void begin();
  void epoch_begin();
  /// One host command of up to `steps` steps with the step hooks around it. False when no step could be run.
  bool command(Feed& feed, std::int64_t steps);
  void epoch_end();
  void end();

  /// As request_stop of a callback.
  void request_stop() { context_.request_stop(); }
  bool stopped() const { return stop_ || context_.get_stop_requested(); }
  /// Of the last step.
  const std::vector<Tensor>& outputs() const { return result_.outputs; }

 private:
  using Hook = void (Callback::*)(RunContext&);
  void each(Hook train, Hook eval);
  void refresh_step();
  void run_steps(runtime::Channel& channel, std::int64_t steps);
  void watch_skipped();
  void take_records();
  void give_outputs();
  void poll_between_steps();

  CallbackParams& params_;
  std::vector<Ref<Callback>> callbacks_;
  std::size_t entered_ = 0;
  PollHook poll_;
  std::atomic<bool>& stop_;
  bool eager_, nested_, training_;
  RunContext context_;

  MakeStep make_;
  Ref<nn::Cell> network_;
  std::uint64_t changes_ = 0, version_ = 0;
  std::int64_t* steps_run_ = nullptr;
  std::unique_ptr<runtime::StepFunction> step_;
  runtime::CommandOptions command_;
  runtime::CommandResult result_;
  std::int64_t skipped_in_a_row_ = 0;
  bool warned_ = false;
  double wait_seconds_ = 0;  // of all steps
  std::chrono::steady_clock::time_point last_poll_;
};

}  // namespace undertow::train
