// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/callback.h"

#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "undertow/base/check.h"

namespace undertow {
namespace {

std::atomic<void (*)(std::string_view)> line_printer{nullptr};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

double mean_loss(const nn::Value& outputs) {
  const std::vector<Tensor> tensors = outputs.tensors();
  UNDERTOW_CHECK(!tensors.empty() && tensors[0].is_concrete(), RuntimeError, "the step returned no loss");
  const Tensor t = tensors[0].to(DType::kFloat64);
  const double* v = t.data_as<double>();
  double sum = 0;
  for (std::int64_t i = 0; i < t.size(); ++i) sum += v[i];
  const double mean = sum / static_cast<double>(t.size());
  return tensors[0].dtype() == DType::kFloat64 ? mean : static_cast<double>(static_cast<float>(mean));
}

void set_line_printer(void (*printer)(std::string_view line)) { line_printer = printer; }

void print_line(std::string_view line) {
  if (auto* printer = line_printer.load()) {
    printer(line);
    return;
  }
  std::string with_end(line);
  with_end += '\n';
  std::fwrite(with_end.data(), 1, with_end.size(), stdout);
  std::fflush(stdout);
}

std::string python_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // Python writes an exponent below 1e-4 and from 1e16 on, std::to_chars wherever it is shorter.
  const double size = std::abs(value);
  char buffer[64];
  const bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, format).ptr);
  if (!scientific && text.find('.') == std::string::npos) text += ".0";
  return text;
}

// ---- LossMonitor
LossMonitorImpl::LossMonitorImpl(std::int64_t per_print_times) : per_print_times_(per_print_times) {
  UNDERTOW_CHECK(per_print_times >= 0, ValueError, "LossMonitor: 'per_print_times' must be at least 0 but is {}",
                 per_print_times);
}

void LossMonitorImpl::on_train_begin(RunContext&) { last_print_ = 0; }

void LossMonitorImpl::on_train_step_end(RunContext& context) {
  const CallbackParams& p = context.original_args();
  const double loss = mean_loss(p.net_outputs);
  const std::int64_t step = p.batch_num > 0 ? (p.cur_step_num - 1) % p.batch_num + 1 : p.cur_step_num;
  UNDERTOW_CHECK(std::isfinite(loss), ValueError,
                 "In epoch: {} step: {}, loss is NAN or INF, training process cannot continue, terminating training.",
                 p.cur_epoch_num, step);
  if (per_print_times_ == 0 || p.cur_step_num - last_print_ < per_print_times_) return;
  last_print_ = p.cur_step_num;
  print_line(fmt::format("epoch: {} step: {}, loss is {}", p.cur_epoch_num, step, python_repr(loss)));
}

// ---- TimeMonitor
TimeMonitorImpl::TimeMonitorImpl(std::optional<std::int64_t> data_size, bool data_time)
    : data_size_(data_size), data_time_(data_time) {
  UNDERTOW_CHECK(!data_size || *data_size > 0, ValueError, "TimeMonitor: 'data_size' must be positive but is {}",
                 *data_size);
}

void TimeMonitorImpl::epoch_begin(RunContext& context) {
  if (context.original_args().mode == "eval") {
    eval_start_ns_ = now_ns();
  } else {
    train_start_ns_ = now_ns();
    evaluated_ns_ = 0;
  }
}

void TimeMonitorImpl::epoch_end(RunContext& context) {
  const CallbackParams& p = context.original_args();
  const bool eval = p.mode == "eval";
  const std::int64_t took = now_ns() - (eval ? eval_start_ns_ : train_start_ns_ + evaluated_ns_);
  if (eval) evaluated_ns_ += took;
  const double total_ms = static_cast<double>(took) * 1e-6;
  const std::int64_t steps = p.batch_num > 0 ? p.batch_num : data_size_.value_or(0);
  UNDERTOW_CHECK(steps > 0, RuntimeError, "TimeMonitor: the number of steps is not known; give it data_size");
  std::string line = fmt::format("{} epoch time: {:5.3f} ms, per step time: {:5.3f} ms", eval ? "Eval" : "Train",
                                 total_ms, total_ms / static_cast<double>(steps));
  if (data_time_) line += fmt::format(" (data time: {:5.3f} ms)", p.wait_seconds * 1e3 / static_cast<double>(steps));
  print_line(line);
}

}  // namespace undertow
