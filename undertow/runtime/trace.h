// SPDX-License-Identifier: Apache-2.0
// runtime/trace.h: what an op call does on this thread. Without a trace it runs at once. Within one it is recorded;
// with execution switched on it is recorded and run (eager training uses the same gradients as compiled training).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "undertow/ir/graph.h"
#include "undertow/ops/dispatch.h"
#include "undertow/tensor/tensor.h"

namespace undertow::runtime {

/// What the outputs of a step stand for.
enum class StepOutputs : std::uint8_t {
  kPlain,
  kLoss,         ///< [0]: the loss
  kGuardedLoss,  ///< [0]: the loss; [1]: whether the step is skipped (bool scalar)
};

class Trace {
 public:
  enum class Mode {
    kCompile,  ///< symbolic: nothing runs
    kEager,    ///< every op runs at once and is recorded
  };
  explicit Trace(Mode mode);
  /// Of a region of `outer`, which compiles: what comes from there becomes an input of the region, and writes of
  /// parameters are left to the trace around (see ops/dispatch.h).
  explicit Trace(Trace& outer);
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
  /// Of sum(seeds[i] * values[i]); entries are undefined where no gradient flows.
  std::vector<Tensor> gradients(const std::vector<Tensor>& values, const std::vector<Tensor>& seeds,
                                const std::vector<Tensor>& wrt);
  /// What the caller reads after a step.
  void output(const Tensor& value);
  /// kCompile: marks the parameter writes in the graph, which is then complete.
  void finish();
  /// kEager: performs the parameter writes. Called after the step's checks passed; a skipped step does those alone that
  /// were made within an AlwaysWritten.
  void commit(bool skipped = false);
  /// The step counter that keys random draws in kEager (kCompile: an input).
  void set_step(std::int64_t step) { step_ = step; }

  /// The parameters as they are now, and where the draws stand.
  struct Snapshot;
  Snapshot snapshot() const;
  void rewind(const Snapshot& to);
  /// kCompile: the parameters are as in `then` where `ok` (bool scalar) holds, else as in `otherwise`.
  void select_writes(const Tensor& ok, const Snapshot& then, const Snapshot& otherwise);
  /// kCompile: code that is traced may branch on this bool scalar, and on what logic makes of such
  /// (runtime/branches.h).
  void mark_flag(const Tensor& flag);
  bool is_flag(const Tensor& tensor) const;

  // Used by the dispatcher.
  std::vector<Tensor> apply(const ir::OpDef& op, const std::vector<Tensor>& inputs, ir::Attrs attrs,
                            std::vector<ir::RegionPtr> regions = {});
  ops::RecordedRegion record(const std::vector<ir::TensorType>& inputs, const ops::Dispatcher::Function& function,
                             std::uint64_t key, int which, int trip);
  void assign(const Parameter& parameter, const Tensor& value);
  Tensor seed_input();
  Tensor step_input();
  std::int64_t next_stream();
  std::uint64_t control_key();
  void enter(std::uint64_t key, int which, std::int64_t trip);
  void leave() { frames_.pop_back(); }
  /// The graph value of a tensor: its symbol, a parameter's current version, or a captured tensor.
  ir::ValueId value_of(const Tensor& tensor);

 private:
  /// Where draws are made: the whole trace, or a function of control flow in it.
  struct Frame {
    std::uint64_t key = 0;  // 0: the whole trace
    std::int64_t draws = 0;
    std::uint64_t fold = 0;  // what the trips so far add to the step
    Tensor step;             // made when it is first asked for
  };

  Tensor tensor_of(ir::ValueId value);
  Tensor first_step();
  Tensor add_tensor(ir::ValueId value, Tensor concrete = {});
  ir::ValueId capture(const Tensor& outer_tensor);
  std::vector<bool> dependents(const std::vector<ir::ValueId>& values) const;
  void refuse_outer_paths(const std::vector<ir::ValueId>& wrt) const;

  ir::ValueId first_version(const TensorImpl* parameter) const;
  bool is_flag(ir::ValueId value) const;

  Mode mode_;
  Trace* outer_ = nullptr;  // of a region
  ir::Graph graph_;
  std::vector<Tensor> tensors_;  // by ValueId; symbolic, and concrete too in kEager
  struct StateEntry {
    std::size_t index;    // into graph_.states; in a region into captured_
    ir::ValueId current;  // newest version
    bool always = false;  // written by skipped steps too
  };
  std::unordered_map<const TensorImpl*, StateEntry> states_;
  std::unordered_map<const TensorImpl*, ir::ValueId> captures_;
  std::vector<ops::RecordedRegion::Capture> captured_;            // of a region
  std::unordered_map<ir::ValueId, ir::ValueId> captured_values_;  // by the outer trace's value
  std::vector<std::uint64_t> regions_;                            // graph numbers, for messages
  Tensor trip_;                                                   // of a region that is a loop's body
  std::vector<Frame> frames_;
  ir::ValueId step_value_ = ir::kNoId;
  std::int64_t step_ = 0;
  bool always_ = false;
  std::unordered_set<ir::ValueId> flags_;
  friend class AlwaysWritten;
};

struct Trace::Snapshot {
  std::unordered_map<const TensorImpl*, ir::ValueId> newest;  // of the parameters that were known
  std::vector<Frame> frames;
};

/// While it lives, parameter writes recorded by a trace are done by skipped steps too: those of the loss scale.
class AlwaysWritten {
 public:
  explicit AlwaysWritten(Trace& trace) : trace_(trace), before_(std::exchange(trace.always_, true)) {}
  ~AlwaysWritten() { trace_.always_ = before_; }
  AlwaysWritten(const AlwaysWritten&) = delete;

 private:
  Trace& trace_;
  bool before_;
};

/// The trace of this thread, or null.
Trace* current_trace();
/// Calls `f`, whose parameter writes happen only where `ok` (bool scalar) holds. A compiled step computes them in any
/// case; elsewhere `f` is not called for nothing.
void write_if(const Tensor& ok, const std::function<void()>& f);
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
