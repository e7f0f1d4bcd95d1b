// SPDX-License-Identifier: Apache-2.0
// runtime/trace.h: what an op call does on this thread. Without a trace it runs at once. Within one it is recorded;
// with execution switched on it is recorded and run (eager training uses the same gradients as compiled training).
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "undertow/ir/graph.h"
#include "undertow/tensor/tensor.h"

namespace undertow::runtime {

class Trace {
 public:
  enum class Mode {
    kCompile,  ///< symbolic: nothing runs
    kEager,    ///< every op runs at once and is recorded
  };
  explicit Trace(Mode mode);
  ~Trace();  ///< A trace that was never finished leaves no mark: its parameter writes are dropped.
  Trace(const Trace&) = delete;

  Mode mode() const { return mode_; }
  ir::Graph& graph() { return graph_; }

  /// A batch input. kCompile: symbolic, of the sample's type. kEager: the sample itself.
  Tensor input(const std::string& name, const Tensor& sample);
  Tensor symbolic_input(const std::string& name, DType dtype, const Shape& shape);
  /// Gradients of scalar-summed `value` (seed: ones, or `seed`) with respect to tensors known to the trace (parameters
  /// or inputs). Zeros where `value` does not depend on them.
  std::vector<Tensor> gradients(const Tensor& value, const std::vector<Tensor>& wrt, const Tensor& seed = {});
  /// What the caller reads after a step.
  void output(const Tensor& value);
  /// kCompile: marks the parameter writes in the graph, which is then complete.
  void finish();
  /// kEager: performs the parameter writes. Called after the step's checks passed.
  void commit();
  /// The step counter that keys random draws in kEager (kCompile: an input).
  void set_step(std::int64_t step) { step_ = step; }

  // Used by the dispatcher.
  std::vector<Tensor> apply(const ir::OpDef& op, const std::vector<Tensor>& inputs, ir::Attrs attrs);
  void assign(const Parameter& parameter, const Tensor& value);
  Tensor seed_input();
  Tensor step_input();
  std::int64_t next_stream() { return next_stream_++; }
  /// The graph value of a tensor: its symbol, a parameter's current version, or a captured tensor.
  ir::ValueId value_of(const Tensor& tensor);

 private:
  Tensor tensor_of(ir::ValueId value) const;

  Mode mode_;
  ir::Graph graph_;
  std::vector<Tensor> tensors_;  // by ValueId; symbolic, and concrete too in kEager
  struct StateEntry {
    std::size_t index;    // into graph_.states
    ir::ValueId current;  // newest version
  };
  std::unordered_map<const TensorImpl*, StateEntry> states_;
  std::unordered_map<const TensorImpl*, ir::ValueId> captures_;
  ir::ValueId step_value_ = ir::kNoId;
  std::int64_t next_stream_ = 0, step_ = 0;
};

/// The trace of this thread, or null.
Trace* current_trace();
/// Makes a trace current for a scope.
class TraceScope {
 public:
  explicit TraceScope(Trace* trace);
  ~TraceScope();

 private:
  Trace* before_;
};

/// The cell path and source line that new nodes get. Cells push their names around `construct`.
class ScopeName {
 public:
  explicit ScopeName(const std::string& name);
  ~ScopeName();
};
std::string current_cell_path();
/// Asked for the user's line when a node is recorded; the Python binding installs one.
void set_line_provider(std::string (*provider)());

/// Global seed: keys random ops, initializers and the data pipeline's default.
void set_seed(std::uint64_t seed);
std::uint64_t seed();
/// `hook` is called by every later set_seed, also one that sets the same seed again.
void on_set_seed(void (*hook)(std::uint64_t seed));

}  // namespace undertow::runtime
