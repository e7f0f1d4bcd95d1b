// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/host/launch.h"

#include <chrono>
#include <cmath>

#include "undertow/backend/host/control.h"

namespace undertow::backend {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double mean_loss(const Program& p) {
  const auto* v = static_cast<const float*>(p.loss);
  if (p.loss_count == 1) return v[0];
  double sum = 0;
  for (std::int64_t i = 0; i < p.loss_count; ++i) sum += v[i];
  return sum / static_cast<double>(p.loss_count);
}

}  // namespace

LaunchResult host_launch(Program& program, const LaunchArgs& args) {
  LaunchResult result;
  set_stop_flag(args.stop);
  std::int64_t start = now_ns();
  for (std::int64_t i = 0; i < args.steps; ++i) {
    if (args.stop && args.stop->load(std::memory_order_relaxed)) break;
    const Slot* slot = args.feed->pop();
    if (!slot) break;
    const Program::Variant& variant = program.variants[static_cast<std::size_t>(slot->variant)];
    *program.step_counter = args.first_step + i;

    ir::StepError& error = result.error;
    for (const Instr& instr : variant.compute) {
      instr.run(instr.context, &error);
      if (error.code != ir::StepError::kNone) break;  // nothing after it is worth having, nor to be printed
    }

    // The guard: from here on the step either happens as a whole or not at all.
    const double loss = program.loss ? mean_loss(program) : 0;
    const bool skip = program.skip && *program.skip;
    if (error.code == ir::StepError::kNone && args.stop_on_non_finite && !skip && !std::isfinite(loss))
      error.code = ir::StepError::kNonFinite;
    if (error.code != ir::StepError::kNone) {
      args.feed->release(slot);
      if (error.code == ir::StepError::kStopped) error = {};  // within a loop: this step has not happened
      return result;
    }
    const float loss_scale = program.loss_scale ? *program.loss_scale : 1.f;
    if (!skip)
      for (const Instr& instr : variant.commit) instr.run(instr.context, &error);
    for (const Instr& instr : variant.always) instr.run(instr.context, &error);

    const std::int64_t end = now_ns();
    StepRecord& record = args.records[static_cast<std::size_t>(i)];
    record.loss = loss;
    record.learning_rate = program.learning_rate ? *program.learning_rate : 0.f;  // written by the step if dynamic
    record.loss_scale = loss_scale;
    record.skipped = skip;
    record.step = args.first_step + i + 1;
    record.wait_ns = slot->wait_ns;
    record.run_ns = end - start - slot->wait_ns;
    start = end;
    args.feed->release(slot);
    ++result.steps;
    if (args.progress) args.progress->fetch_add(1, std::memory_order_release);
  }
  return result;
}

}  // namespace undertow::backend
