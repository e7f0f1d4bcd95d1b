// SPDX-License-Identifier: Apache-2.0
// runtime/session.h: step functions (a trace recipe and its compiled programs) and the commands that run them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "undertow/backend/backend.h"
#include "undertow/runtime/channel.h"
#include "undertow/runtime/trace.h"

namespace undertow::runtime {

class CompiledStep;

/// What one step computes, as a recipe that is traced again at every command and found again by its graph's hash.
class StepFunction {
 public:
  /// `build` gets the batch columns and returns the step's outputs, which are what `outputs` says.
  using Build = std::function<std::vector<Tensor>(Trace&, const std::vector<Tensor>& columns)>;
  StepFunction(std::string name, Build build, StepOutputs outputs);
  ~StepFunction();

  const std::string& name() const { return name_; }
  StepOutputs outputs() const { return outputs_; }
  /// Steps run so far over the life of this object; keys random ops.
  std::int64_t steps_run = 0;
  /// A float32 scalar parameter that the step records report as the learning rate (may be null).
  Tensor learning_rate;
  /// The same for the loss scale that a step has (before it is updated).
  Tensor loss_scale;

  /// The program for columns of these types: traced, and compiled unless its graph is known.
  std::shared_ptr<CompiledStep> compile(const std::vector<ColumnType>& columns);
  /// The program for these types if it has been compiled, else null.
  CompiledStep* find(const std::vector<ColumnType>& columns) const;
  const Build& build() const { return build_; }
  /// Forgets the programs: the next command traces again (the network may have changed).
  void retrace() { compiled_.clear(); }

 private:
  std::string name_;
  Build build_;
  StepOutputs outputs_;
  std::vector<std::pair<std::vector<ColumnType>, std::shared_ptr<CompiledStep>>> compiled_;
};

/// A value that had to be finite is not: what stop_on_non_finite raises.
class NonFiniteLoss : public ValueError {
 public:
  using ValueError::ValueError;
};

struct CommandOptions {
  std::int64_t steps = 1;
  bool stop_on_non_finite = false;
  std::atomic<bool>* stop = nullptr;  ///< set from outside: the command ends at the next step border
  /// Called about every 20 ms on the calling thread while it waits (signals, progress). May throw: the command is then
  /// stopped at the next step border and the exception passes on.
  std::function<void(std::span<const backend::StepRecord> done)> poll;
};

struct CommandResult {
  std::int64_t steps = 0;                    ///< steps completed
  std::vector<Tensor> outputs;               ///< of the last step (copies)
  std::vector<backend::StepRecord> records;  ///< one per step
  bool end_of_data = false;
};

/// ONE host command: the compute thread runs up to `options.steps` steps fed by `channel`; the caller waits. Programs
/// for other batch shapes are compiled when they first come. A device-side error raises (IndexError, ValueError) with
/// the state as it was after the last completed step; a pipeline failure raises the worker's own exception. `result` is
/// overwritten; its vectors keep their capacity, so that a command in a steady state allocates nothing.
void run_command(StepFunction& step, Channel& channel, const CommandOptions& options, CommandResult& result);

/// The same steps on the calling thread, op by op. Same results within 1e-5.
void run_eager(StepFunction& step, Channel& channel, const CommandOptions& options, CommandResult& result);

/// Compiles (or finds) the program for these inputs and runs it once: jit functions, predict.
std::vector<Tensor> run_once(StepFunction& step, const std::vector<Tensor>& inputs);

/// Runs `f` on the calling thread with an eager trace: value and gradients of PYNATIVE code.
struct ValueAndGrad {
  std::vector<Tensor> values, grads;
};
/// `f` returns its outputs; the first is differentiated with respect to `wrt` (inputs or parameters).
ValueAndGrad eager_value_and_grad(const std::function<std::vector<Tensor>()>& f, const std::vector<Tensor>& wrt,
                                  const Tensor& seed = {});

}  // namespace undertow::runtime
