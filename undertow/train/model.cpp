// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/model.h"

#include <algorithm>
#include <optional>

#include "undertow/base/check.h"
#include "undertow/data/pipeline.h"
#include "undertow/runtime/context.h"
#include "undertow/train/amp.h"
#include "undertow/train/run.h"
#include "undertow/train/sink.h"
#include "undertow/train/train_step.h"
#include "undertow/train/wrap.h"

namespace undertow {

struct Model::Impl {
  Ref<nn::Cell> network, loss_fn;
  Ref<nn::OptimizerCell> optimizer;
  ModelOptions options;
  train::LossScaling scaling;
  std::vector<Ref<Callback>> callbacks;  // of every training run
  std::atomic<bool> stop{false};
  std::int64_t train_steps_run = 0, eval_steps_run = 0;  // key random ops over all calls

  /// In PYNATIVE mode without the sink every op runs by itself; everything else is compiled.
  static bool eager(bool sink) { return !sink && context().mode == PYNATIVE_MODE; }

  struct Validation;
  struct Evaluation {
    std::vector<std::pair<std::string, double>> results;
    std::optional<double> loss;  // in fit
    bool stopped = false;
  };
  void check_rates(std::int64_t steps) const;
  void train(const char* function, std::int64_t epoch, const data::Dataset& dataset, const TrainOptions& o,
             const Validation* validation);
  Evaluation evaluate(const data::Dataset& dataset, const EvalOptions& o, bool in_fit, std::int64_t epoch);
  /// A cell of its own at each call: nothing here keeps it, so that cycles through it can be collected.
  Ref<nn::Cell> train_network() const;

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
  UNDERTOW_CHECK(options.metrics.empty() || loss_fn || options.eval_network, ValueError,
                 "Model: 'metrics' need a 'loss_fn' or an 'eval_network'");
  for (const nn::NamedMetric& m : options.metrics)
    UNDERTOW_CHECK(m.metric, TypeError, "Model: metric '{}' is not a Metric", m.name);
  amp::auto_mixed_precision(network,
                            {.amp_level = options.amp_level, .keep_batchnorm_fp32 = options.keep_batchnorm_fp32});
  impl_->network = std::move(network);
  impl_->loss_fn = std::move(loss_fn);
  impl_->optimizer = std::move(optimizer);
  impl_->options = std::move(options);
  const Ref<LossScaleManagerImpl> manager =
      impl_->options.loss_scale_manager.value_or(default_loss_scale_manager(impl_->options.amp_level));
  if (!impl_->optimizer || !manager) return;
  impl_->scaling.update = manager->get_update_cell();
  impl_->scaling.scale = nn::scale_sense(manager->get_loss_scale(), "Model: the scale of 'loss_scale_manager'");
}

Model::~Model() = default;

const Ref<nn::Cell>& Model::network() const { return impl_->network; }
const Ref<nn::Cell>& Model::loss_fn() const { return impl_->loss_fn; }
const Ref<nn::OptimizerCell>& Model::optimizer() const { return impl_->optimizer; }
const Ref<nn::Cell>& Model::loss_scale_update() const { return impl_->scaling.update; }
Ref<nn::Cell> Model::train_network() const { return impl_->train_network(); }
const std::vector<nn::NamedMetric>& Model::metrics() const { return impl_->options.metrics; }
void Model::add_callback(const Ref<Callback>& callback) { impl_->callbacks.push_back(callback); }
void Model::request_stop() { impl_->stop = true; }

/// Fit's evaluations: between the epochs of a training run.
struct Model::Impl::Validation {
  const data::Dataset& dataset;
  const FitOptions& options;

  bool due(std::int64_t epoch) const {
    if (options.valid_epochs.empty()) return epoch % options.valid_frequency == 0;
    return std::find(options.valid_epochs.begin(), options.valid_epochs.end(), epoch) != options.valid_epochs.end();
  }
};

void Model::Impl::check_rates(std::int64_t steps) const {
  const std::int64_t left = optimizer ? optimizer->steps_left() : -1;
  UNDERTOW_CHECK(left < 0 || steps <= left, ValueError,
                 "'learning_rate' of {} is a list of {} values, one a step, of which {} are used, but this run has {} "
                 "steps",
                 optimizer->cls_name(), optimizer->listed_steps(), optimizer->listed_steps() - left, steps);
}

void Model::Impl::train(const char* function, std::int64_t epoch, const data::Dataset& dataset, const TrainOptions& o,
                        const Validation* validation) {
  UNDERTOW_CHECK(epoch > 0, ValueError, "{}: 'epoch' must be a positive number but is {}", function, epoch);
  UNDERTOW_CHECK(o.initial_epoch >= 0 && o.initial_epoch < epoch, ValueError,
                 "{}: 'initial_epoch' must be at least 0 and below 'epoch' = {}, but is {}", function, epoch,
                 o.initial_epoch);
  UNDERTOW_CHECK(o.sink_size == -1 || o.sink_size > 0, ValueError, "{}: 'sink_size' must be -1 or positive but is {}",
                 function, o.sink_size);
  const std::int64_t size = train::checked_size(dataset, "train_dataset");
  UNDERTOW_CHECK(size > 0 || !o.dataset_sink_mode || o.sink_size > 0, ValueError,
                 "{}: the size of 'train_dataset' is not known, so 'sink_size' must be given", function);
  check_columns(dataset, "train_dataset", bool(loss_fn));

  const std::int64_t per_epoch = o.dataset_sink_mode && o.sink_size > 0 ? o.sink_size : size;
  const std::int64_t epochs = epoch - o.initial_epoch;
  if (per_epoch > 0) check_rates(epochs * per_epoch);
  data::PipelineOptions pipeline;
  if (size > 0) {
    const std::int64_t first = o.initial_epoch * per_epoch;
    pipeline.first_epoch = first / size;
    pipeline.first_batch = first % size;
    pipeline = data::resume(dataset, pipeline);
    pipeline.num_epochs = (pipeline.first_batch + epochs * per_epoch + size - 1) / size;
  } else {
    pipeline.num_epochs = o.dataset_sink_mode ? -1 : epochs;
  }

  const train::TrainFlags flags({network, loss_fn, Ref<nn::Cell>(optimizer)}, true);
  CallbackParams p;
  p.mode = "train";
  p.epoch_num = epochs;
  p.batch_num = std::max<std::int64_t>(per_epoch, 0);
  p.dataset_sink_mode = o.dataset_sink_mode;
  p.sink_size = o.dataset_sink_mode ? per_epoch : -1;
  p.network = network;
  p.train_network = train_network();
  p.loss_fn = loss_fn;
  p.optimizer = optimizer;
  p.train_dataset = dataset;
  if (validation) p.valid_dataset = validation->dataset;

  stop = false;
  std::vector<Ref<Callback>> all = o.callbacks;
  for (const Ref<Callback>& c : callbacks)
    if (std::find(all.begin(), all.end(), c) == all.end()) all.push_back(c);
  train::Run run(p, {all, o.poll, eager(o.dataset_sink_mode)}, stop);
  run.make_step([this] { return train::make_train_step(network, loss_fn, optimizer, scaling); }, network,
                train_steps_run);
  train::Feed feed(dataset, pipeline, size);
  run.begin();
  for (std::int64_t e = o.initial_epoch; e < epoch && !run.stopped(); ++e) {
    p.cur_epoch_num = e + 1;
    run.epoch_begin();
    if (o.dataset_sink_mode) {
      run.command(feed, per_epoch);
    } else {
      for (std::int64_t s = 0; (s < size || size < 0) && !run.stopped(); ++s)
        if (!run.command(feed, 1)) break;
    }
    if (validation && validation->due(e + 1) && !stop) {
      EvalOptions eval{o.callbacks, validation->options.valid_dataset_sink_mode, o.poll};
      std::erase_if(eval.callbacks, [](const Ref<Callback>& c) { return !c->follows_fit_evaluation(); });
      const Evaluation done = evaluate(validation->dataset, eval, true, e + 1);
      p.metrics = p.eval_results = done.results;
      if (done.loss) p.eval_results.emplace_back("eval_loss", *done.loss);
      if (done.stopped) run.request_stop();
    }
    run.epoch_end();
    p.metrics.clear();
    p.eval_results.clear();
  }
  run.end();
}

Model::Impl::Evaluation Model::Impl::evaluate(const data::Dataset& dataset, const EvalOptions& o, bool in_fit,
                                              std::int64_t epoch) {
  const std::int64_t size = train::checked_size(dataset, "valid_dataset");
  check_columns(dataset, "valid_dataset", loss_fn && !options.eval_network);

  train::EvalStep step{network, loss_fn, options.eval_network, options.eval_indexes, {}, !o.callbacks.empty()};
  std::vector<nn::NamedMetric> metrics = options.metrics;
  if (in_fit) metrics.emplace_back("eval_loss", nn::get_metric("loss"));
  std::vector<Ref<nn::Metric>> host;
  for (const nn::NamedMetric& named : metrics) {
    named.metric->clear();
    if (named.metric->traced()) step.traced.push_back(named.metric);
    else host.push_back(named.metric);
  }
  step.outputs = step.outputs || !host.empty();

  const train::TrainFlags flags({network, loss_fn, options.eval_network}, false);
  CallbackParams p;
  p.mode = "eval";
  p.cur_epoch_num = epoch;
  p.epoch_num = 1;
  p.batch_num = std::max<std::int64_t>(size, 0);
  p.dataset_sink_mode = o.dataset_sink_mode;
  p.network = network;
  p.eval_network = options.eval_network ? options.eval_network : network;
  p.loss_fn = loss_fn;
  p.optimizer = optimizer;
  p.valid_dataset = dataset;

  train::Run run(p, {o.callbacks, o.poll, eager(o.dataset_sink_mode), in_fit}, stop);
  run.make_step([&step] { return train::make_eval_step(step); }, network, eval_steps_run);
  train::Feed feed(dataset, {}, size);
  run.begin();
  run.epoch_begin();
  if (o.dataset_sink_mode && host.empty() && size > 0) {
    run.command(feed, size);
  } else {
    for (std::int64_t s = 0; (s < size || size < 0) && !run.stopped() && run.command(feed, 1); ++s) {
      if (host.empty()) continue;
      const nn::EvalBatch batch = train::eval_batch(run.outputs(), options.eval_indexes, true);
      for (const Ref<nn::Metric>& metric : host) metric->update(batch);
    }
  }
  Evaluation done;
  for (const nn::NamedMetric& named : metrics) {
    const double value = named.metric->eval();
    if (in_fit && &named == &metrics.back()) done.loss = value;
    else done.results.emplace_back(named.name, value);
  }
  p.metrics = done.results;
  run.epoch_end();
  run.end();
  done.stopped = run.stopped();
  return done;
}

Ref<nn::Cell> Model::Impl::train_network() const {
  Ref<nn::Cell> with_loss = network;
  if (loss_fn) with_loss = nn::WithLossCell(network, loss_fn);
  return optimizer ? nn::train_cell(with_loss, optimizer, scaling.scale, scaling.update) : with_loss;
}

void Model::train(std::int64_t epoch, const data::Dataset& train_dataset, const TrainOptions& options) {
  impl_->train("Model.train", epoch, train_dataset, options, nullptr);
}

void Model::fit(std::int64_t epoch, const data::Dataset& train_dataset, const data::Dataset& valid_dataset,
                const FitOptions& options) {
  UNDERTOW_CHECK(options.valid_frequency > 0, ValueError, "Model.fit: 'valid_frequency' must be positive but is {}",
                 options.valid_frequency);
  UNDERTOW_CHECK(!impl_->options.metrics.empty(), ValueError,
                 "Model.fit: the Model was made without 'metrics', so there is nothing to evaluate");
  train::checked_size(valid_dataset, "valid_dataset");
  const Impl::Validation validation{valid_dataset, options};
  const TrainOptions training{options.callbacks, options.dataset_sink_mode, options.sink_size, options.initial_epoch,
                              options.poll};
  impl_->train("Model.fit", epoch, train_dataset, training, &validation);
}

std::map<std::string, double> Model::eval(const data::Dataset& valid_dataset, const EvalOptions& o) {
  UNDERTOW_CHECK(!impl_->options.metrics.empty(), ValueError, "Model.eval: the Model was made without 'metrics'");
  impl_->stop = false;
  const auto results = impl_->evaluate(valid_dataset, o, false, 1).results;
  return {results.begin(), results.end()};
}

void Model::build(const data::Dataset* train_dataset, const data::Dataset* valid_dataset) {
  Impl& m = *impl_;
  const auto compile = [&](const data::Dataset& dataset, const char* argument, bool pair, bool training,
                           const std::function<std::unique_ptr<runtime::StepFunction>()>& make) {
    train::checked_size(dataset, argument);
    m.check_columns(dataset, argument, pair);
    const train::TrainFlags flags({m.network, m.loss_fn, m.options.eval_network, Ref<nn::Cell>(m.optimizer)}, training);
    const data::Pipeline pipeline(dataset);
    std::vector<runtime::ColumnType> types;
    for (const data::ColumnSpec& s : pipeline.specs()) types.push_back({s.name, s.dtype, s.shape});
    make()->compile(types);
  };
  if (train_dataset)
    compile(*train_dataset, "train_dataset", bool(m.loss_fn), true,
            [&m] { return train::make_train_step(m.network, m.loss_fn, m.optimizer, m.scaling); });
  if (!valid_dataset) return;
  UNDERTOW_CHECK(!m.options.metrics.empty(), ValueError, "Model.build: the Model was made without 'metrics'");
  train::EvalStep step{m.network, m.loss_fn, m.options.eval_network, m.options.eval_indexes, {}, false};
  for (const nn::NamedMetric& named : m.options.metrics)
    if (named.metric->traced()) step.traced.push_back(named.metric);
  compile(*valid_dataset, "valid_dataset", m.loss_fn && !m.options.eval_network, false,
          [&step] { return train::make_eval_step(step); });
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
