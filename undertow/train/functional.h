// SPDX-License-Identifier: Apache-2.0
// train/functional.h: what training loops of one's own are made of.
//
//   DataSink sink([&](const std::vector<Tensor>& batch) {
//     const auto [values, grads] = value_and_grad([&] { return scaler->scale({loss_fn(net(batch[0]), batch[1])}); },
//     weights); const Tensor finite = amp::all_finite(grads); update_if(finite, [&] {
//     opt->update(scaler->unscale(grads)); }); scaler->adjust(finite); return scaler->unscale(values);
//   }, dataset, 100);
//   for (int i = 0; i < 10; ++i) Tensor loss = sink()[0];  // 100 steps a call; the loss of the last one
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "undertow/data/dataset.h"

namespace undertow {

struct ValueAndGrad {
  std::vector<Tensor> values, grads;
};
/// What `f` returns, and the gradients of its first output (of its sum, where it has several elements) with respect to
/// `weights`, in their order; zeros where it does not depend on them.
ValueAndGrad value_and_grad(const std::function<std::vector<Tensor>()>& f, const std::vector<Parameter>& weights);

/// Calls `update`, whose parameter writes happen only where `ok` (one element) holds. In a compiled step the update is
/// computed in any case.
void update_if(const Tensor& ok, const std::function<void()>& update);

/// A training step that is sunk as Model sinks its own.
class DataSink {
 public:
  /// Gets the columns of a batch and returns what the caller wants to see of the last step. It is traced and compiled
  /// once for each shape of a batch.
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>& columns)>;
  /// The data begins with the object and goes on from epoch to epoch, over the calls. Throws ValueError for a sink_size
  /// below 1 and for an empty dataset.
  DataSink(Function function, const data::Dataset& dataset, std::int64_t sink_size = 1);
  ~DataSink();
  DataSink(const DataSink&) = delete;
  DataSink& operator=(const DataSink&) = delete;

  /// sink_size steps as one host command; the outputs of the last one. `poll` is called about every 20 ms meanwhile and
  /// may throw to end the command at a step border. Throws what the function, the data or a step throws; DataError
  /// where a source gives no more rows.
  std::vector<Tensor> operator()(const std::function<void()>& poll = {});
  /// From any thread: the call in progress ends at the next step border with a RuntimeError.
  void request_stop();
  /// Traces anew at the next call: what the function uses has changed.
  void retrace();
  std::int64_t sink_size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace undertow
