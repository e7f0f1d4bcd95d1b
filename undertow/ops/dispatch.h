// SPDX-License-Identifier: Apache-2.0
// ops/dispatch.h: where an op call goes: into the graph being traced, to a kernel at once, or both. The runtime
// decides.
#pragma once

#include <vector>

#include "undertow/ir/op_def.h"

namespace undertow::ops {

class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  /// Outputs in the op's order. Throws the error family with op, shapes, cell path and line.
  virtual std::vector<Tensor> apply(const ir::OpDef& op, std::vector<Tensor> inputs, ir::Attrs attrs) = 0;
  /// The parameter's value becomes `value` for later reads.
  virtual void assign(const Parameter& parameter, const Tensor& value) = 0;
  /// The generator's key: seed (uint64 scalar), step counter (int64 scalar), and a number for this draw.
  struct RandomKey {
    Tensor seed, step;
    std::int64_t stream;
  };
  virtual RandomKey random_key() = 0;
};

/// Installed once by the runtime when the library is loaded.
void set_dispatcher(Dispatcher* dispatcher);
Dispatcher& dispatcher();

/// Calls an op by its record or its name (call: one output); attributes that are left out take their defaults.
std::vector<Tensor> apply(const ir::OpDef& op, std::vector<Tensor> inputs, ir::Attrs attrs = {});
std::vector<Tensor> apply(std::string_view op, std::vector<Tensor> inputs, ir::Attrs attrs = {});
Tensor call(std::string_view op, std::vector<Tensor> inputs, ir::Attrs attrs = {});

}  // namespace undertow::ops
