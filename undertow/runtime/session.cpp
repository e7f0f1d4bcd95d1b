// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/runtime/branches.h"
#include "undertow/runtime/compile.h"
#include "undertow/runtime/compute_thread.h"
#include "undertow/runtime/counters.h"
#include "undertow/runtime/eager.h"

namespace undertow::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPollPeriod = std::chrono::milliseconds(20);
constexpr std::int64_t kMaxStepsPerCommand = 1'000'000;
// A command goes to the compute thread and back in 10 to 20 us. One whose steps are tiny (no kernel opens a team) and
// which is soon over runs where it was given.
constexpr std::int64_t kTinyStepNs = 20'000, kShortCommandNs = 300'000;

/// Hands a channel's slots to a launch for as long as they fit the program.
class ChannelFeed final : public backend::Feed {
 public:
  /// `generation`: the channel's memory as the program is bound to it; newer slots do not fit. `idle`, if any, is
  /// called every kPollPeriod of a wait.
  ChannelFeed(Channel& channel, int shapes, std::uint64_t generation, const std::atomic<bool>* stop,
              const std::function<void()>* idle)
      : channel_(channel), shapes_(shapes), generation_(generation), stop_(stop), idle_(idle) {}

  const backend::Slot* pop() override {
    slot_.wait_ns = 0;
    current_ = channel_.try_peek();  // the clock is read only where there is something to measure
    if (!current_) {
      const auto start = Clock::now();
      current_ = wait(channel_, stop_, idle_);
      slot_.wait_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    }
    if (!current_ || current_->shapes != shapes_ || current_->memory_generation > generation_) return nullptr;
    slot_.variant = current_->index;
    return &slot_;
  }
  void release(const backend::Slot*) override { channel_.release(current_); }

  /// Channel::peek until something comes or nothing will.
  static ChannelSlot* wait(Channel& channel, const std::atomic<bool>* stop, const std::function<void()>* idle) {
    if (!idle) return channel.peek(stop);
    for (;;) {
      ChannelSlot* slot = channel.peek(stop, kPollPeriod);
      if (slot || channel.over() || stop->load(std::memory_order_relaxed)) return slot;
      (*idle)();
    }
  }

 private:
  Channel& channel_;
  int shapes_;
  std::uint64_t generation_;
  const std::atomic<bool>* stop_;
  const std::function<void()>* idle_;
  ChannelSlot* current_ = nullptr;
  backend::Slot slot_;
};

/// One batch that is there already.
class SingleFeed final : public backend::Feed {
 public:
  const backend::Slot* pop() override { return std::exchange(done_, true) ? nullptr : &slot_; }
  void release(const backend::Slot*) override {}

 private:
  bool done_ = false;
  backend::Slot slot_;
};

bool soon_done(const CompiledGraph& program, std::int64_t steps) {
  const std::int64_t ns = program.step_ns.load(std::memory_order_relaxed);
  return program.serial() && ns > 0 && ns < kTinyStepNs && steps * ns < kShortCommandNs;
}
void note_step(CompiledGraph& program, const backend::StepRecord& record) {
  program.step_ns.store(std::max<std::int64_t>(record.run_ns, 1), std::memory_order_relaxed);
}

[[noreturn]] void raise(const ir::StepError& error, const CompiledGraph& graph) {
  if (const Origin* o = graph.origin(error)) raise_step_error(error, o->op, o->scope);
  raise_step_error(error, "the step", {});
}

}  // namespace

StepFunction::StepFunction(std::string name, Build build, StepOutputs outputs)
    : name_(std::move(name)), build_(std::move(build)), outputs_(outputs) {}
StepFunction::~StepFunction() = default;

CompiledStep* StepFunction::find(const std::vector<ColumnType>& columns) const {
  for (const auto& [types, step] : compiled_)
    if (types == columns) return step.get();
  return nullptr;
}

std::shared_ptr<CompiledStep> StepFunction::compile(const std::vector<ColumnType>& columns) {
  for (const auto& [types, step] : compiled_)
    if (types == columns) return step;
  Trace trace(Trace::Mode::kCompile);
  {
    const TraceScope scope(&trace);
    std::vector<Tensor> inputs;
    for (const auto& c : columns) inputs.push_back(trace.symbolic_input(c.name, c.dtype, c.shape));
    auto outputs = trace_branches(trace, [&] { return build_(trace, inputs); });
    const bool has_loss = outputs_ != StepOutputs::kPlain;
    UNDERTOW_CHECK(!has_loss || !outputs.empty(), TypeError, "{}: the step returned no loss", name_);
    if (has_loss) outputs[0] = ops::cast(outputs[0], DType::kFloat32);
    for (const auto& t : outputs) trace.output(t);
  }
  auto step = runtime::compile(trace, outputs_);
  compiled_.emplace_back(columns, step);
  return step;
}

void run_command(StepFunction& step, Channel& channel, const CommandOptions& options, CommandResult& result) {
  result.outputs.clear();
  std::atomic<bool> own_stop{false};
  std::atomic<bool>* stop = options.stop ? options.stop : &own_stop;
  const std::int64_t wanted = std::min(options.steps, kMaxStepsPerCommand);
  result.records.resize(static_cast<std::size_t>(wanted));
  counters().commands.fetch_add(1, std::memory_order_relaxed);

  std::atomic<std::int64_t> progress{0};
  std::exception_ptr poll_error;
  const auto ask = [&] {
    if (!options.poll || poll_error || stop->load(std::memory_order_relaxed)) return;
    try {
      options.poll(std::span(result.records).first(static_cast<std::size_t>(progress.load(std::memory_order_acquire))));
    } catch (...) {
      poll_error = std::current_exception();
      stop->store(true);
    }
  };
  const std::function<void()> poll = std::cref(ask);  // by reference: no allocation for each command

  const auto soon_over = [&] {
    const ChannelSlot* next = channel.try_peek();
    const CompiledStep* compiled = next ? step.find(channel.shape_set(next->shapes)) : nullptr;
    return compiled && soon_done(*compiled->compiled, wanted);
  };
  const bool here = soon_over();
  const std::function<void()>* idle = here ? &poll : nullptr;

  // On the compute thread (or in its place): launches for as long as the batches' programs are known; a new shape comes
  // back here, to the thread that may trace.
  std::int64_t done = 0, allocations = 0;
  ir::StepError error;
  CompiledStep* last = nullptr;
  const std::vector<ColumnType>* unknown = nullptr;
  const auto job = [&] {
    while (done < wanted && !stop->load(std::memory_order_relaxed)) {
      const ChannelSlot* next = ChannelFeed::wait(channel, stop, idle);
      if (!next) break;
      const int shapes = next->shapes;
      CompiledStep* compiled = step.find(channel.shape_set(shapes));
      if (!compiled) {
        unknown = &channel.shape_set(shapes);
        break;
      }
      CompiledGraph& program = *compiled->compiled;
      const std::lock_guard lock(program.mutex);
      backend::Program& bound = program.bind(compiled->addresses(channel, step));
      ChannelFeed feed(channel, shapes, compiled->generation(), stop, idle);
      backend::LaunchArgs args;
      args.borrowed_thread = here;
      args.steps = wanted - done;
      args.first_step = step.steps_run;
      args.feed = &feed;
      args.records = std::span(result.records).subspan(static_cast<std::size_t>(done));
      args.progress = &progress;
      args.stop = stop;
      args.stop_on_non_finite = options.stop_on_non_finite;
      const std::int64_t before = thread_allocations();
      const backend::LaunchResult launched = program.device().launch(bound, args);
      allocations += thread_allocations() - before;
      last = compiled;
      if (launched.steps > 0) note_step(program, args.records[static_cast<std::size_t>(launched.steps) - 1]);
      done += launched.steps;
      step.steps_run += launched.steps;
      if ((error = launched.error).code != ir::StepError::kNone) break;
      const bool over = done == wanted || stop->load(std::memory_order_relaxed);
      if (launched.steps > 0 && (over || !channel.try_peek())) program.read_outputs(result.outputs);
    }
  };
  do {
    unknown = nullptr;
    if (here) run_in_its_place(std::cref(job));
    else run_on_compute_thread(std::cref(job), std::cref(poll), kPollPeriod);
    if (unknown) step.compile(*unknown);
  } while (unknown && !stop->load());
  counters().steps.fetch_add(done, std::memory_order_relaxed);
  counters().allocations.fetch_add(allocations, std::memory_order_relaxed);
  result.steps = done;
  result.records.resize(static_cast<std::size_t>(done));
  result.end_of_data = channel.finished();
  if (poll_error) std::rethrow_exception(poll_error);
  if (error.code != ir::StepError::kNone) raise(error, *last->compiled);
  if (done < wanted && !stop->load())
    if (const auto e = channel.error()) std::rethrow_exception(e);
}

void run_eager(StepFunction& step, Channel& channel, const CommandOptions& options, CommandResult& result) {
  result = {};
  counters().commands.fetch_add(1, std::memory_order_relaxed);
  for (std::int64_t i = 0; i < options.steps && !(options.stop && options.stop->load()); ++i) {
    const auto start = Clock::now();
    ChannelSlot* slot = nullptr;
    while (!slot && !channel.finished() && !(options.stop && options.stop->load())) {
      slot = channel.peek(options.stop, kPollPeriod);
      if (!slot && options.poll) options.poll(result.records);
    }
    if (!slot) break;
    const auto waited = Clock::now();
    Trace trace(Trace::Mode::kEager);
    trace.set_step(step.steps_run);
    std::vector<Tensor> outputs;
    {
      const TraceScope scope(&trace);
      const auto& types = channel.shape_set(slot->shapes);
      std::vector<Tensor> inputs;
      for (std::size_t c = 0; c < types.size(); ++c) {
        Tensor t(types[c].dtype, types[c].shape);  // a copy: the user may keep it, the slot is used again
        if (t.nbytes()) std::memcpy(t.data(), slot->columns[c], t.nbytes());
        inputs.push_back(trace.input(types[c].name, t));
      }
      channel.release(slot);
      outputs = step.build()(trace, inputs);
    }
    backend::StepRecord record;
    if (step.outputs() == StepOutputs::kGuardedLoss) record.skipped = outputs.at(1).item<bool>();
    if (step.loss_scale.defined()) record.loss_scale = step.loss_scale.item<float>();  // before this step's update
    if (step.outputs() != StepOutputs::kPlain) {
      const Tensor loss = outputs.at(0).to(DType::kFloat32);
      const float* v = loss.data_as<float>();
      for (std::int64_t k = 0; k < loss.size(); ++k) record.loss += v[k];
      record.loss /= static_cast<double>(std::max<std::int64_t>(loss.size(), 1));
      if (options.stop_on_non_finite && !record.skipped && !std::isfinite(record.loss))
        raise_step_error({.code = ir::StepError::kNonFinite}, "the step", {});
    }
    trace.commit(record.skipped);
    if (step.learning_rate.defined()) record.learning_rate = step.learning_rate.item<float>();
    record.step = ++step.steps_run;
    record.wait_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(waited - start).count();
    record.run_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - waited).count();
    result.records.push_back(record);
    result.outputs = std::move(outputs);
    ++result.steps;
    counters().steps.fetch_add(1, std::memory_order_relaxed);
    if (options.poll) options.poll(result.records);
  }
  result.end_of_data = channel.finished();
  if (result.steps < options.steps && !(options.stop && options.stop->load()))
    if (const auto e = channel.error()) std::rethrow_exception(e);
}

std::vector<Tensor> run_once(StepFunction& step, const std::vector<Tensor>& inputs) {
  std::vector<ColumnType> types;
  std::vector<std::byte*> columns;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    types.push_back({"arg" + std::to_string(i), inputs[i].dtype(), inputs[i].shape()});
    columns.push_back(static_cast<std::byte*>(inputs[i].data()));
  }
  const auto compiled = step.compile(types);
  CompiledGraph& program = *compiled->compiled;
  const std::lock_guard lock(program.mutex);
  backend::Program& bound = program.bind(compiled->addresses(std::move(columns), step));
  SingleFeed feed;
  backend::StepRecord record;
  backend::LaunchArgs args;
  args.steps = 1;
  args.first_step = step.steps_run;
  args.feed = &feed;
  args.records = std::span(&record, 1);
  backend::LaunchResult launched;
  args.borrowed_thread = soon_done(program, 1);
  const auto job = [&] { launched = program.device().launch(bound, args); };
  if (args.borrowed_thread) run_in_its_place(job);
  else run_on_compute_thread(job, [] {}, kPollPeriod);
  note_step(program, record);
  if (launched.error.code != ir::StepError::kNone) raise(launched.error, program);
  ++step.steps_run;
  std::vector<Tensor> outputs;
  program.read_outputs(outputs);
  return outputs;
}

ValueAndGrad eager_value_and_grad(const std::function<std::vector<Tensor>()>& f, const std::vector<Tensor>& wrt,
                                  const Tensor& seed) {
  Trace trace(Trace::Mode::kEager);
  ValueAndGrad result;
  {
    const TraceScope scope(&trace);
    result.values = f();
    UNDERTOW_CHECK(!result.values.empty(), TypeError, "the function returned no tensor to differentiate");
    result.grads = trace.gradients(result.values[0], wrt, seed);
  }
  trace.commit();
  return result;
}

}  // namespace undertow::runtime
