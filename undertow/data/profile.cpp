// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/profile.h"

#include <algorithm>
#include <cmath>

#include "undertow/base/check.h"
#include "undertow/data/stage_clock.h"
#include "undertow/data/stream.h"

namespace undertow::data {
namespace {

constexpr double kKeepsUp = 0.05;  // of the time that a consumer may wait

std::string name_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kSource: return node.source->name();
    case Node::Kind::kMap: {
      std::vector<std::string> columns;
      for (const int c : node.op_inputs) columns.push_back(node.inputs[0]->names[static_cast<std::size_t>(c)]);
      return fmt::format("map({}) of {}", node.op->name(), fmt::join(columns, ", "));
    }
    case Node::Kind::kZip: return "zip";
    default: return node.collate ? "batch, with its function" : "batch";
  }
}

std::string duration(double seconds) {
  if (seconds >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} us", seconds * 1e6);
}

std::string bottleneck_of(const Profile& p) {
  if (p.stages.empty() || p.batches == 0) return "No batch has been made yet.";
  const StageProfile& s = *std::ranges::min_element(p.stages, {}, &StageProfile::samples_per_second);
  const std::string slowest = fmt::format(
      "{} takes {:.0f} % of the pipeline's time: {} a sample, {:.0f} samples/s with {} worker{}", s.name, s.share * 100,
      duration(s.seconds_per_sample), s.samples_per_second, s.workers, s.workers == 1 ? "" : "s");
  const double waited = p.seconds > 0 ? p.wait_seconds / p.seconds : 0;
  if (waited <= kKeepsUp)
    return fmt::format("The pipeline keeps up (its consumer waited for data {:.1f} % of the time); of its stages, {}.",
                       waited * 100, slowest);
  return fmt::format("The consumer waited for data {:.0f} % of the time; {}.", waited * 100, slowest);
}

}  // namespace

std::string Profile::str() const {
  std::size_t width = 5;
  for (const StageProfile& s : stages) width = std::max(width, s.name.size());
  std::string out = fmt::format("{:<{}}  workers  time/sample  samples/s alone  share\n", "stage", width);
  for (const StageProfile& s : stages)
    out += fmt::format("{:<{}}  {:>7}  {:>11}  {:>15.0f}  {:>4.0f} %\n", s.name, width, s.workers,
                       duration(s.seconds_per_sample), s.samples_per_second, s.share * 100);
  return out +
         fmt::format("queue: {:.1f} of {} batches ready on average; {} batches in {:.2f} s, waited for {:.2f} s\n{}",
                     queue_depth, queue_size, batches, seconds, wait_seconds, bottleneck);
}

void fill_stages(const Plan& plan, Profile& profile) {
  double total = 0;
  for (const auto& clock : plan.clocks) {
    const std::int64_t samples = clock->samples.load(std::memory_order_relaxed);
    if (samples == 0) continue;
    StageProfile s;
    s.name = name_of(*clock->node);
    s.samples = samples;
    s.seconds = static_cast<double>(clock->ns.load(std::memory_order_relaxed)) * 1e-9;
    s.workers = clock->gate ? clock->gate->limit() : std::min(clock->workers, plan.workers);
    s.seconds_per_sample = s.seconds / static_cast<double>(samples);
    s.samples_per_second = s.workers / std::max(s.seconds_per_sample, 1e-9);
    total += s.seconds;
    profile.stages.push_back(std::move(s));
  }
  for (StageProfile& s : profile.stages) s.share = total > 0 ? s.seconds / total : 0;
  profile.bottleneck = bottleneck_of(profile);
}

void tune(Plan& plan) {
  std::vector<StageClock*> stages;
  double total = 0;
  for (const auto& clock : plan.clocks) {
    if (!clock->tunable) continue;
    stages.push_back(clock.get());
  }
  std::vector<double> taken;
  for (StageClock* s : stages) {
    const std::int64_t ns = s->ns.load(std::memory_order_relaxed);
    taken.push_back(static_cast<double>(ns - s->ns_seen));
    s->ns_seen = ns;
    total += taken.back();
  }
  if (total <= 0) return;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const auto share = static_cast<int>(std::ceil(taken[i] / total * plan.workers - 1e-9));
    stages[i]->gate->set_limit(std::clamp(share, 1, plan.workers));
  }
}

}  // namespace undertow::data
