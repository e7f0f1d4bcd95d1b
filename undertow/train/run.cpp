// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/run.h"

#include "undertow/base/check.h"
#include "undertow/base/log.h"
#include "undertow/data/pipeline.h"

namespace undertow::train {
namespace {

constexpr std::chrono::milliseconds kPollEvery{20};

}  // namespace

std::int64_t checked_size(const data::Dataset& dataset, const char* argument) {
  const std::int64_t size = dataset.get_dataset_size();
  if (size != 0) return size;
  std::string why;
  try {
    const data::Pipeline probe(dataset);
  } catch (const Error& e) {
    why = std::string(": ") + e.what();
  }
  throw ValueError(fmt::format("'{}' has 0 batches of size {}, so there is nothing to run{}", argument,
                               dataset.get_batch_size(), why));
}

Run::Run(CallbackParams& params, const RunOptions& options, std::atomic<bool>& stop)
    : params_(params),
      callbacks_(options.callbacks),
      poll_(options.poll),
      stop_(stop),
      eager_(options.eager),
      nested_(options.nested),
      training_(params.mode == "train"),
      context_(&params),
      last_poll_(std::chrono::steady_clock::now()) {
  for (const Ref<Callback>& c : callbacks_)
    UNDERTOW_CHECK(c, TypeError, "'callbacks' holds something that is no Callback");
  params_.list_callback = callbacks_;
  command_.stop = &stop_;
  if (poll_) command_.poll = [this](std::span<const backend::StepRecord>) { poll_(); };
  for (const Ref<Callback>& c : callbacks_)
    command_.stop_on_non_finite = command_.stop_on_non_finite || (training_ && c->stops_on_non_finite());
}

Run::~Run() {
  while (entered_ > 0) {
    try {
      callbacks_[--entered_]->exit();
    } catch (...) {  // an error is on its way already, or the run is over
    }
  }
}

void Run::make_step(MakeStep make, Ref<nn::Cell> network, std::int64_t& steps_run) {
  make_ = std::move(make);
  network_ = std::move(network);
  steps_run_ = &steps_run;
  step_ = make_();
  step_->steps_run = steps_run;
  changes_ = nn::Cell::changes();
  version_ = network_->version();
}

/// A callback may have frozen a layer or set flags: then the step is traced anew.
void Run::refresh_step() {
  if (changes_ == nn::Cell::changes()) return;
  changes_ = nn::Cell::changes();
  const std::uint64_t version = network_->version();
  if (version == version_) return;
  version_ = version;
  step_ = make_();
  step_->steps_run = *steps_run_;
}

void Run::each(Hook train, Hook eval) {
  for (const Ref<Callback>& c : callbacks_) (c.get()->*(training_ ? train : eval))(context_);
}

void Run::begin() {
  for (; !nested_ && entered_ < callbacks_.size(); ++entered_) callbacks_[entered_]->enter();
  each(&Callback::on_train_begin, &Callback::on_eval_begin);
}

void Run::epoch_begin() {
  params_.wait_seconds = 0;
  each(&Callback::on_train_epoch_begin, &Callback::on_eval_epoch_begin);
}

void Run::epoch_end() { each(&Callback::on_train_epoch_end, &Callback::on_eval_epoch_end); }

void Run::end() {
  each(&Callback::on_train_end, &Callback::on_eval_end);
  while (entered_ > 0) callbacks_[--entered_]->exit();
}

bool Run::command(Feed& feed, std::int64_t steps) {
  params_.cur_step_num += steps;
  if (!callbacks_.empty()) {
    params_.step_losses.clear();
    params_.step_learning_rates.clear();
    params_.step_loss_scales.clear();
    params_.step_skipped.clear();
    each(&Callback::on_train_step_begin, &Callback::on_eval_step_begin);
    refresh_step();
  }
  const std::int64_t first = params_.cur_step_num - steps;
  run_steps(feed.channel(), steps);
  params_.cur_step_num = first + result_.steps;
  feed.reached(params_.cur_step_num, wait_seconds_);
  if (result_.steps < steps && !stopped() && params_.batch_num > 0)
    throw DataError(
        fmt::format("the dataset ended after {} steps of this run, but its size is {}; a source must give as "
                    "many rows as it says",
                    params_.cur_step_num, params_.batch_num));
  if (result_.steps == 0) return false;
  if (!callbacks_.empty()) {
    give_outputs();
    each(&Callback::on_train_step_end, &Callback::on_eval_step_end);
  }
  if (poll_ && !stopped()) poll_between_steps();
  return true;
}

/// The runtime may cut a very long command into several.
void Run::run_steps(runtime::Channel& channel, std::int64_t steps) {
  const std::int64_t before = *steps_run_;
  std::int64_t done = 0;
  do {
    command_.steps = steps - done;
    try {
      (eager_ ? runtime::run_eager : runtime::run_command)(*step_, channel, command_, result_);
    } catch (const runtime::NonFiniteLoss&) {
      *steps_run_ = step_->steps_run;
      const std::int64_t step = params_.cur_step_num - steps + (*steps_run_ - before) + 1;
      throw ValueError(fmt::format(
          "In epoch: {} step: {}, loss is NAN or INF, training process cannot continue, terminating training.",
          params_.cur_epoch_num, params_.batch_num > 0 ? (step - 1) % params_.batch_num + 1 : step));
    } catch (...) {
      *steps_run_ = step_->steps_run;
      throw;
    }
    *steps_run_ = step_->steps_run;
    done += result_.steps;
    watch_skipped();
    for (const backend::StepRecord& r : result_.records) wait_seconds_ += static_cast<double>(r.wait_ns) * 1e-9;
    if (!callbacks_.empty()) take_records();
  } while (done < steps && result_.steps > 0 && !stopped() && !result_.end_of_data);
  result_.steps = done;
}

/// One that never ends is no scale that is too large.
void Run::watch_skipped() {
  constexpr std::int64_t kTooMany = 130;  // more than halving the largest scale down to 1 takes
  for (const backend::StepRecord& r : result_.records) {
    skipped_in_a_row_ = r.skipped ? skipped_in_a_row_ + 1 : 0;
    if (skipped_in_a_row_ != kTooMany || warned_) continue;
    warned_ = true;
    log_warning(fmt::format(
        "{} steps in a row were skipped up to step {}: their gradients hold inf or NaN, at loss scale {} now. Such "
        "steps "
        "change no weight. Look for inf and NaN in the data and the labels, lower the learning rate or clip the "
        "gradients, or compute the part that overflows in float32 or bfloat16",
        skipped_in_a_row_, r.step, r.loss_scale));
  }
}

void Run::take_records() {
  for (const backend::StepRecord& r : result_.records) {
    params_.step_losses.push_back(r.loss);
    params_.step_learning_rates.push_back(r.learning_rate);
    params_.step_loss_scales.push_back(r.loss_scale);
    params_.step_skipped.push_back(r.skipped);
    params_.wait_seconds += static_cast<double>(r.wait_ns) * 1e-9;
  }
}

void Run::give_outputs() {
  if (result_.outputs.size() == 1) {
    params_.net_outputs = result_.outputs[0];
  } else {
    nn::Value::List all(result_.outputs.begin(), result_.outputs.end());
    params_.net_outputs = nn::Value(std::move(all));
  }
}

/// Short commands never wait long enough for the runtime to ask.
void Run::poll_between_steps() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_poll_ < kPollEvery) return;
  last_poll_ = now;
  poll_();
}

}  // namespace undertow::train
