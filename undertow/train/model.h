// SPDX-License-Identifier: Apache-2.0
// train/model.h: Model: training, evaluation and prediction of a network.
//
//   auto model = Model(net, nn::MSELoss(), opt, {.metrics = {"loss"}});
//   model.train(10, train, {.callbacks = {LossMonitor(100)}, .dataset_sink_mode = true});
//   double loss = model.eval(test)["loss"];
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "undertow/data/dataset.h"
#include "undertow/train/callback.h"
#include "undertow/train/cell.h"
#include "undertow/train/loss_scale.h"
#include "undertow/train/metric.h"
#include "undertow/train/optimizer.h"

namespace undertow {

struct ModelOptions {
  std::vector<nn::NamedMetric> metrics;
  /// Gets all columns and returns (loss, output, label); default: the network and the loss function.
  Ref<nn::Cell> eval_network;
  /// Places of loss, output and label in what eval_network returns.
  std::array<int, 3> eval_indexes{0, 1, 2};
  std::string amp_level = "O0";  ///< set on the network (train/amp.h), with the context's half type
  std::optional<bool> keep_batchnorm_fp32;
  /// The loss is multiplied by its scale for the gradients, which are divided by it before the update: whatever the
  /// optimizer's own loss_scale argument is. Not given: DynamicLossScaleManager() at level O2, else none (null). Of no
  /// effect without an optimizer.
  std::optional<Ref<LossScaleManagerImpl>> loss_scale_manager;
};

/// Called on the calling thread about every 20 ms while a run is in progress; may throw to end it at a step border.
using PollHook = std::function<void()>;

struct TrainOptions {
  std::vector<Ref<Callback>> callbacks;
  /// Runs sink_size steps per host command. `epoch` then counts commands, and the data flows across their borders.
  bool dataset_sink_mode = false;
  std::int64_t sink_size = -1;  ///< -1: the dataset's size
  std::int64_t initial_epoch = 0;
  PollHook poll;
};
/// When Model::fit evaluates: after every n-th epoch, or after these.
struct FitOptions {
  std::vector<Ref<Callback>> callbacks;
  bool dataset_sink_mode = false;
  std::int64_t sink_size = -1, initial_epoch = 0;
  PollHook poll;
  std::int64_t valid_frequency = 1;
  std::vector<std::int64_t> valid_epochs;  ///< in place of valid_frequency
  bool valid_dataset_sink_mode = false;
};
struct EvalOptions {
  std::vector<Ref<Callback>> callbacks;
  bool dataset_sink_mode = false;  ///< the whole pass is one host command
  PollHook poll;
};

class Model {
 public:
  /// Throws ValueError for arguments that do not go together. Without a loss function the network returns the loss.
  explicit Model(Ref<nn::Cell> network, Ref<nn::Cell> loss_fn = {}, Ref<nn::OptimizerCell> optimizer = {},
                 ModelOptions options = {});
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Trains up to epoch number `epoch`. Arguments and data are checked before anything changes. An error in a step
  /// leaves the state as it was after the step before.
  void train(std::int64_t epoch, const data::Dataset& train_dataset, const TrainOptions& options = {});
  /// Trains, and evaluates after some epochs: callbacks find the results in eval_results (metrics and "eval_loss", the
  /// mean loss over all rows) at the end of such an epoch. Callbacks that are written by users, and TimeMonitor, get
  /// the on_eval hooks too.
  void fit(std::int64_t epoch, const data::Dataset& train_dataset, const data::Dataset& valid_dataset,
           const FitOptions& options = {});
  /// Compiles the training step (and the evaluation step) for the datasets' batches; nothing is run.
  void build(const data::Dataset* train_dataset, const data::Dataset* valid_dataset = nullptr);
  /// Results by metric name; every row counts once.
  std::map<std::string, double> eval(const data::Dataset& valid_dataset, const EvalOptions& options = {});
  /// The network's outputs in evaluation mode.
  std::vector<Tensor> predict(const std::vector<Tensor>& inputs);

  /// Called in every later training run, beside those that the run is given.
  void add_callback(const Ref<Callback>& callback);

  /// From any thread: the run in progress ends at the next step border, without an error. The end hooks run.
  void request_stop();

  const Ref<nn::Cell>& network() const;
  const Ref<nn::Cell>& loss_fn() const;
  const Ref<nn::OptimizerCell>& optimizer() const;
  const std::vector<nn::NamedMetric>& metrics() const;
  /// The cell that updates the loss scale, or null.
  const Ref<nn::Cell>& loss_scale_update() const;
  /// The network with its loss, its optimizer and the state of its loss scale as one cell: called with a batch, it
  /// trains one step. A new cell at each call, over the same parameters.
  Ref<nn::Cell> train_network() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace undertow
