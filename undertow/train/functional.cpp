// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/functional.h"

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/runtime/session.h"
#include "undertow/train/run.h"
#include "undertow/train/sink.h"

namespace undertow {

ValueAndGrad value_and_grad(const std::function<std::vector<Tensor>()>& f, const std::vector<Parameter>& weights) {
  const std::vector<Tensor> wrt(weights.begin(), weights.end());
  if (runtime::Trace* trace = runtime::current_trace()) {
    ValueAndGrad result{f(), {}};
    UNDERTOW_CHECK(!result.values.empty(), TypeError, "the function returned no tensor to differentiate");
    result.grads = trace->gradients(result.values[0], wrt);
    return result;
  }
  auto [values, grads] = runtime::eager_value_and_grad(f, wrt);
  return {std::move(values), std::move(grads)};
}

void update_if(const Tensor& ok, const std::function<void()>& update) {
  UNDERTOW_CHECK(ok.size() == 1, ShapeError, "update_if: 'ok' must have one element, got shape {}", ok.shape().str());
  runtime::write_if(ops::reshape(ops::cast(ok, DType::kBool), {}), update);
}

struct DataSink::Impl {
  runtime::StepFunction step;
  data::PipelineOptions options;
  data::Dataset dataset;
  std::int64_t sink_size, epoch_size;
  std::int64_t steps = 0;             // of all calls
  double wait_seconds = 0;            // that they waited for data
  std::unique_ptr<train::Feed> feed;  // starts with the first call
  std::atomic<bool> stop{false};
  runtime::CommandOptions command;
  runtime::CommandResult result;
};

DataSink::DataSink(Function function, const data::Dataset& dataset, std::int64_t sink_size) {
  UNDERTOW_CHECK(sink_size >= 1, ValueError, "data_sink: 'sink_size' must be at least 1 but is {}", sink_size);
  const std::int64_t epoch_size = train::checked_size(dataset, "dataset");
  auto build = [function = std::move(function)](runtime::Trace&, const std::vector<Tensor>& columns) {
    return function(columns);
  };
  data::PipelineOptions options;
  options.num_epochs = -1;
  impl_.reset(new Impl{.step = {"data_sink", std::move(build), runtime::StepOutputs::kPlain},
                       .options = options,
                       .dataset = dataset,
                       .sink_size = sink_size,
                       .epoch_size = epoch_size});
  impl_->command.stop = &impl_->stop;
}

DataSink::~DataSink() = default;

void DataSink::request_stop() { impl_->stop = true; }
void DataSink::retrace() { impl_->step.retrace(); }
std::int64_t DataSink::sink_size() const { return impl_->sink_size; }

std::vector<Tensor> DataSink::operator()(const std::function<void()>& poll) {
  Impl& d = *impl_;
  if (!d.feed) {
    const data::PipelineOptions options = data::resume(d.dataset, d.options);
    d.feed = std::make_unique<train::Feed>(d.dataset, options, d.epoch_size);
  }
  d.stop = false;
  d.command.poll = {};
  if (poll) d.command.poll = [&poll](std::span<const backend::StepRecord>) { poll(); };
  std::vector<Tensor> outputs;
  // The runtime may cut a very long command into several.
  for (std::int64_t done = 0; done < d.sink_size; done += d.result.steps) {
    d.command.steps = d.sink_size - done;
    runtime::run_command(d.step, d.feed->channel(), d.command, d.result);
    d.steps += d.result.steps;
    for (const backend::StepRecord& r : d.result.records) d.wait_seconds += static_cast<double>(r.wait_ns) * 1e-9;
    d.feed->reached(d.steps, d.wait_seconds);
    UNDERTOW_CHECK(!d.stop, RuntimeError, "data_sink: the call was stopped after {} of its {} steps",
                   done + d.result.steps, d.sink_size);
    UNDERTOW_CHECK(d.result.steps > 0, DataError, "data_sink: the dataset ended after {} of the {} steps of this call",
                   done, d.sink_size);
    outputs = d.result.outputs;
  }
  return outputs;
}

}  // namespace undertow
