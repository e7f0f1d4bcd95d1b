// SPDX-License-Identifier: Apache-2.0
// ops/dispatch.h: where an op call goes: into the graph being traced, to a kernel at once, or both. The runtime
// decides.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "undertow/ir/graph.h"
#include "undertow/ir/op_def.h"

namespace undertow::ops {

/// A function recorded as a sub-graph. `graph` has the declared inputs first, then one for each entry of `captured`;
/// its outputs are what the function returned. `written` holds the parameters that it wrote with their newest values.
struct RecordedRegion {
  struct Capture {
    Tensor outer;         // what the input stands for in the trace around
    Parameter parameter;  // defined: the parameter that was read or written (outer: its version there)
    ir::ValueId value;    // the region's input
  };
  std::shared_ptr<ir::Graph> graph;
  std::vector<Capture> captured;
  std::vector<std::pair<Parameter, ir::ValueId>> written;
};

class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  /// Outputs in the op's order. Throws the error family with op, shapes, cell path and line. `regions`: control flow
  /// only, and only while `compiling()`.
  virtual std::vector<Tensor> apply(const ir::OpDef& op, std::vector<Tensor> inputs, ir::Attrs attrs,
                                    std::vector<ir::RegionPtr> regions) = 0;
  /// The parameter's value becomes `value` for later reads.
  virtual void assign(const Parameter& parameter, const Tensor& value) = 0;
  /// The generator's key: seed (uint64 scalar), step counter (int64 scalar), and a number for this draw.
  struct RandomKey {
    Tensor seed, step;
    std::int64_t stream;
  };
  virtual RandomKey random_key() = 0;
  /// Whether ops are recorded without being run: then a Parameter has no value to look at, and functions of control
  /// flow are recorded as regions instead of run.
  virtual bool compiling() const = 0;

  /// A number for one use of control flow: keys the draws of its functions, recorded or run.
  virtual std::uint64_t control_key() = 0;
  /// Around a function of control flow that runs at once: draws between the two calls are keyed by the use, by which of
  /// its functions this is, and in a loop by the trip (-1: no loop), as they are where the function is recorded.
  virtual void enter(std::uint64_t key, int which, std::int64_t trip) = 0;
  virtual void leave() = 0;
  /// Records `function` on inputs of these types. `trip`: the input that counts the trips (int64 scalar), -1: no loop.
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  virtual RecordedRegion record(const std::vector<ir::TensorType>& inputs, const Function& function, std::uint64_t key,
                                int which, int trip) = 0;
  /// Gradients of sum(seeds[i] * values[i]) within the trace in progress; undefined where none flows.
  virtual std::vector<Tensor> gradients(const std::vector<Tensor>& values, const std::vector<Tensor>& seeds,
                                        const std::vector<Tensor>& wrt) = 0;
  /// What `function` would return on inputs of these types; nothing of it happens.
  virtual std::vector<ir::TensorType> abstract(const std::vector<ir::TensorType>& inputs, const Function& function) = 0;
  /// "cell net.fc, at train.py:31" for messages; "" where nothing is known.
  virtual std::string where() = 0;
};

/// Installed once by the runtime when the library is loaded.
void set_dispatcher(Dispatcher* dispatcher);
Dispatcher& dispatcher();

/// Calls an op by its record or its name (call: one output); attributes that are left out take their defaults.
std::vector<Tensor> apply(const ir::OpDef& op, std::vector<Tensor> inputs, ir::Attrs attrs = {},
                          std::vector<ir::RegionPtr> regions = {});
std::vector<Tensor> apply(std::string_view op, std::vector<Tensor> inputs, ir::Attrs attrs = {});
Tensor call(std::string_view op, std::vector<Tensor> inputs, ir::Attrs attrs = {});

}  // namespace undertow::ops
