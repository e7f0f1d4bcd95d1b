// SPDX-License-Identifier: Apache-2.0
// runtime/compile.h: from a traced graph to a program that a device can launch.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "undertow/backend/backend.h"
#include "undertow/runtime/channel.h"
#include "undertow/runtime/lower.h"
#include "undertow/runtime/trace.h"
#include "undertow/transforms/casts.h"
#include "undertow/transforms/plan.h"

namespace undertow::runtime {

/// A graph's kernels and memory plan. Shared by everything that traces to the same graph on the same device; its
/// program is bound to one set of addresses at a time.
class CompiledGraph {
 public:
  CompiledGraph(ir::Graph graph, backend::Backend& device, StepOutputs outputs);

  /// Where everything lives for a run: pointers by Graph::states and by the captured inputs, in the graph's order, and
  /// the batch columns of each slot variant, one variant after the other.
  struct Addresses {
    std::vector<void*> states, captures;
    std::vector<std::byte*> columns;
    std::size_t variants = 1;
    const float *learning_rate = nullptr, *loss_scale = nullptr;
    friend bool operator==(const Addresses&, const Addresses&) = default;
  };
  /// Resolves every instruction's pointers, unless they are already these. Call with `mutex` held.
  backend::Program& bind(const Addresses& addresses);

  /// Copies of the graph's outputs as the last step left them. Call with `mutex` held.
  void read_outputs(std::vector<Tensor>& out) const;

  backend::Backend& device() const { return device_; }
  const ir::Graph& graph() const { return graph_; }
  /// See transforms/casts.h.
  const std::vector<transforms::Cast>& casts() const { return casts_; }
  /// It updates states: a training step.
  bool writes() const;
  /// Where a StepError's node came from; null for one that is no node's.
  const Origin* origin(const ir::StepError& error) const {
    return error.node >= 0 && static_cast<std::size_t>(error.node) < origins_.size()
               ? &origins_[static_cast<std::size_t>(error.node)]
               : nullptr;
  }
  std::mutex mutex;  // held while the program is bound and run
  /// How long a step took when last seen, without waits; 0: not known. Decides only where a command runs.
  std::atomic<std::int64_t> step_ns{0};
  /// Any thread may run it: it opens no team of threads and prints nothing.
  bool serial() const { return serial_; }

 private:
  struct Copy {
    void *to, *from;
    std::size_t bytes;
  };
  void* address(ir::ValueId v, const Addresses& a, std::size_t variant) const;

  ir::Graph graph_;
  backend::Backend& device_;
  StepOutputs outputs_;
  bool serial_ = true;
  std::vector<Origin> origins_;
  std::vector<transforms::Cast> casts_;
  transforms::Plan plan_;
  std::vector<bool> reads_batch_;                  // by node
  std::vector<int> capture_index_, column_index_;  // by input; -1: the other kind
  std::size_t num_columns_ = 0;
  backend::Program program_;
  Ref<Storage> arena_;
  std::int64_t step_ = 0;
  std::deque<Copy> copies_;
  Addresses bound_;
  bool is_bound_ = false;
};

class StepFunction;

/// A traced step: the compiled graph, and the tensors that this trace's states and captures stand for.
class CompiledStep {
 public:
  std::shared_ptr<CompiledGraph> compiled;
  std::vector<Tensor> states, captures;

  /// For one batch in memory, its columns in order.
  CompiledGraph::Addresses addresses(std::vector<std::byte*> columns, const StepFunction& step) const;
  /// For a channel's slots; made once per channel memory.
  const CompiledGraph::Addresses& addresses(Channel& channel, const StepFunction& step);
  /// The channel's memory generation that `addresses(channel)` last saw.
  std::uint64_t generation() const { return generation_; }

 private:
  CompiledGraph::Addresses of_channel_;
  std::uint64_t generation_ = 0;
};

/// Optimizes and lowers the finished graph of a trace, or finds the program of an equal graph.
std::shared_ptr<CompiledStep> compile(Trace& trace, StepOutputs outputs);
/// The newest program that reads or writes one of these parameters, a training step before others; null when there is
/// none (any more: old programs are dropped).
std::shared_ptr<const CompiledGraph> newest_program(const std::vector<Parameter>& parameters);

}  // namespace undertow::runtime
