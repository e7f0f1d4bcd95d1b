// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/model.h"

#include <algorithm>
#include <optional>

#include "undertow/base/check.h"
#include "undertow/runtime/context.h"
#include "undertow/train/run.h"
#include "undertow/train/sink.h"
#include "undertow/train/train_step.h"

namespace undertow {

struct Model::Impl {
  Ref<nn::Cell> network, loss_fn;
  Ref<nn::OptimizerCell> optimizer;
  ModelOptions options;
  std::atomic<bool> stop{false};
  std::int64_t train_steps_run = 0, eval_steps_run = 0;  // key random ops over all calls

  /// In PYNATIVE mode without the sink every op runs by itself; everything else is compiled.
  static bool eager(bool sink) { return !sink && context().mode == PYNATIVE_MODE; }

  void check_columns(const data::Dataset& dataset, const char* argument, bool pair) const {
    const std::vector<std::string> names = dataset.get_col_names();
    UNDERTOW_CHECK(
        !pair || names.size() == 2, ValueError,
        "with a loss function, '{}' must give two columns (data, label), but it gives {}: {}. Choose two with "
        "project(), or leave out loss_fn and let the network compute the loss",
        argument, names.size(), fmt::join(names, ", "));
  }
};

Model::Model(Ref<nn::Cell> network, Ref<nn::Cell> loss_fn, Ref<nn::OptimizerCell> optimizer, ModelOptions options)
    : impl_(std::make_unique<Impl>()) {
  UNDERTOW_CHECK(network, TypeError, "Model: 'network' must be a Cell");
  UNDERTOW_CHECK(options.amp_level == "O0", ValueError, "Model: amp_level '{}' is not supported yet; use O0",
                 options.amp_level);
  UNDERTOW_CHECK(options.metrics.empty() || loss_fn || options.eval_network, ValueError,
                 "Model: 'metrics' need a 'loss_fn' or an 'eval_network'");
  for (const nn::NamedMetric& m : options.metrics)
    UNDERTOW_CHECK(m.metric, TypeError, "Model: metric '{}' is not a Metric", m.name);
  impl_->network = std::move(network);
  impl_->loss_fn = std::move(loss_fn);
  impl_->optimizer = std::move(optimizer);
  impl_->options = std::move(options);
}

Model::~Model() = default;

const Ref<nn::Cell>& Model::network() const { return impl_->network; }
const Ref<nn::Cell>& Model::loss_fn() const { return impl_->loss_fn; }
const Ref<nn::OptimizerCell>& Model::optimizer() const { return impl_->optimizer; }
const std::vector<nn::NamedMetric>& Model::metrics() const { return impl_->options.metrics; }
void Model::request_stop() { impl_->stop = true; }

void Model::train(std::int64_t epoch, const data::Dataset& train_dataset, const TrainOptions& o) {
  Impl& m = *impl_;
  UNDERTOW_CHECK(epoch > 0, ValueError, "Model.train: 'epoch' must be a positive number but is {}", epoch);
  UNDERTOW_CHECK(o.initial_epoch >= 0 && o.initial_epoch < epoch, ValueError,
                 "Model.train: 'initial_epoch' must be at least 0 and below 'epoch' = {}, but is {}", epoch,
                 o.initial_epoch);
  UNDERTOW_CHECK(o.sink_size == -1 || o.sink_size > 0, ValueError,
                 "Model.train: 'sink_size' must be -1 or positive but is {}", o.sink_size);
  const std::int64_t size = train::checked_size(train_dataset, "train_dataset");
  UNDERTOW_CHECK(size > 0 || !o.dataset_sink_mode || o.sink_size > 0, ValueError,
                 "Model.train: the size of 'train_dataset' is not known, so 'sink_size' must be given");
  m.check_columns(train_dataset, "train_dataset", bool(m.loss_fn));

  const std::int64_t per_epoch = o.dataset_sink_mode && o.sink_size > 0 ? o.sink_size : size;
  const std::int64_t epochs = epoch - o.initial_epoch;
  data::PipelineOptions pipeline;
  if (size > 0) {
    const std::int64_t first = o.initial_epoch * per_epoch;
    pipeline.first_epoch = first / size;
    pipeline.first_batch = first % size;
    pipeline.num_epochs = (pipeline.first_batch + epochs * per_epoch + size - 1) / size;
  } else {
    pipeline.num_epochs = o.dataset_sink_mode ? -1 : epochs;
  }

  const train::TrainFlags flags({m.network, m.loss_fn, Ref<nn::Cell>(m.optimizer)}, true);
  CallbackParams p;
  p.mode = "train";
  p.epoch_num = epochs;
  p.batch_num = std::max<std::int64_t>(per_epoch, 0);
  p.dataset_sink_mode = o.dataset_sink_mode;
  p.sink_size = o.dataset_sink_mode ? per_epoch : -1;
  p.network = p.train_network = m.network;
  p.loss_fn = m.loss_fn;
  p.optimizer = m.optimizer;
  p.train_dataset = train_dataset;

  m.stop = false;
  train::Run run(p, o.callbacks, o.poll, m.stop, Impl::eager(o.dataset_sink_mode));
  run.make_step([&m] { return train::make_train_step(m.network, m.loss_fn, m.optimizer); }, m.network,
                m.train_steps_run);
  train::Feed feed(train_dataset, pipeline);
  run.begin();
  for (std::int64_t e = o.initial_epoch; e < epoch && !run.stopped(); ++e) {
    p.cur_epoch_num = e + 1;
    run.epoch_begin();
    if (o.dataset_sink_mode) {
      run.command(feed.channel(), per_epoch);
    } else {
      for (std::int64_t s = 0; (s < size || size < 0) && !run.stopped(); ++s)
        if (!run.command(feed.channel(), 1)) break;
    }
    run.epoch_end();
  }
  run.end();
}

std::map<std::string, double> Model::eval(const data::Dataset& valid_dataset, const EvalOptions& o) {
  Impl& m = *impl_;
  UNDERTOW_CHECK(!m.options.metrics.empty(), ValueError, "Model.eval: the Model was made without 'metrics'");
  const std::int64_t size = train::checked_size(valid_dataset, "valid_dataset");
  m.check_columns(valid_dataset, "valid_dataset", m.loss_fn && !m.options.eval_network);

  train::EvalStep step{m.network, m.loss_fn, m.options.eval_network, m.options.eval_indexes, {}, !o.callbacks.empty()};
  std::vector<Ref<nn::Metric>> host;
  for (const nn::NamedMetric& named : m.options.metrics) {
    named.metric->clear();
    if (named.metric->traced()) step.traced.push_back(named.metric);
    else host.push_back(named.metric);
  }
  step.outputs = step.outputs || !host.empty();

  const train::TrainFlags flags({m.network, m.loss_fn, m.options.eval_network}, false);
  CallbackParams p;
  p.mode = "eval";
  p.cur_epoch_num = 1;
  p.epoch_num = 1;
  p.batch_num = std::max<std::int64_t>(size, 0);
  p.dataset_sink_mode = o.dataset_sink_mode;
  p.network = m.network;
  p.eval_network = m.options.eval_network ? m.options.eval_network : m.network;
  p.loss_fn = m.loss_fn;
  p.optimizer = m.optimizer;
  p.valid_dataset = valid_dataset;

  m.stop = false;
  train::Run run(p, o.callbacks, o.poll, m.stop, Impl::eager(o.dataset_sink_mode));
  run.make_step([&step] { return train::make_eval_step(step); }, m.network, m.eval_steps_run);
  train::Feed feed(valid_dataset, {});
  run.begin();
  run.epoch_begin();
  if (o.dataset_sink_mode && host.empty() && size > 0) {
    run.command(feed.channel(), size);
  } else {
    for (std::int64_t s = 0; (s < size || size < 0) && !run.stopped() && run.command(feed.channel(), 1); ++s) {
      if (host.empty()) continue;
      const nn::EvalBatch batch = train::eval_batch(run.outputs(), m.options.eval_indexes, true);
      for (const Ref<nn::Metric>& metric : host) metric->update(batch);
    }
  }
  std::map<std::string, double> results;
  for (const nn::NamedMetric& named : m.options.metrics) {
    results[named.name] = named.metric->eval();
    p.metrics.emplace_back(named.name, results[named.name]);
  }
  run.epoch_end();
  run.end();
  return results;
}

std::vector<Tensor> Model::predict(const std::vector<Tensor>& inputs) {
  Impl& m = *impl_;
  UNDERTOW_CHECK(!inputs.empty(), ValueError, "Model.predict: no inputs were given");
  const train::TrainFlags flags({m.network}, false);
  if (Impl::eager(false)) return m.network->call({inputs.begin(), inputs.end()}).tensors();
  const auto step = train::make_predict_step(m.network);
  return runtime::run_once(*step, inputs);
}

}  // namespace undertow
