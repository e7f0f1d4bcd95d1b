// SPDX-License-Identifier: Apache-2.0
// ir/graph.h: a program as a list of nodes in execution order. Nodes and values are indices into the graph's arenas.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "undertow/ir/attrs.h"
#include "undertow/ir/loop_nest.h"
#include "undertow/ir/op_def.h"

namespace undertow::ir {

using ValueId = std::uint32_t;
using NodeId = std::uint32_t;
inline constexpr std::uint32_t kNoId = UINT32_MAX;

/// When a node runs within a step: compute, then commit, which a skipped step leaves out (loss scaling), then what is
/// written in any case.
enum class Phase : std::uint8_t { kCompute, kCommit, kAlways };

struct Value {
  TensorType type;
  NodeId producer = kNoId;  // kNoId: an input or a state
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs, outputs;
  Attrs attrs;
  std::uint32_t scope = 0;  // into Graph::scopes
  Phase phase = Phase::kCompute;
  std::shared_ptr<const LoopNest> nest;  // fused nodes only
  std::vector<RegionPtr> regions;        // control flow only
};

/// A tensor that comes from outside at every step or command.
struct Input {
  enum Kind : std::uint8_t {
    kBatch,
    kCapture,
    kStep,      // int64 scalar: steps run so far, keys dropout
    kArgument,  // of a region: what its node hands in
  };
  std::string name;
  ValueId value = kNoId;
  Kind kind = kBatch;
  Tensor captured;  // kCapture: read at each command
};

/// A Parameter the graph reads or writes.
struct State {
  std::string name;
  ValueId value = kNoId;   // on entry
  ValueId result = kNoId;  // on exit, kNoId when it is only read
  bool always = false;     // written by skipped steps too: the loss scale and its counters
  Tensor parameter;        // null in graphs that were parsed from text
};

/// Where a node came from: the cell's path and the user's line.
struct Scope {
  std::string cell;  // "net.fc"
  std::string line;  // "lenet.py:31" or ""
};

/// A program; or a region: a sub-graph of a control-flow node. A region sees nothing but its inputs (all kArgument),
/// has no states and is compute phase only; the node's operator says what its inputs and outputs are.
class Graph {
 public:
  Graph();
  std::uint64_t id() const { return id_; }

  ValueId add_input(Input input, const TensorType& type);
  ValueId add_state(State state, const TensorType& type);
  /// Infers the outputs' types; returns the node. Errors carry op, shapes and scope.
  NodeId add_node(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs, std::uint32_t scope = 0,
                  std::vector<RegionPtr> regions = {});
  /// For passes that know the types (fused nodes).
  NodeId add_node_typed(Node node, std::span<const TensorType> outputs);
  ValueId new_value(const TensorType& type, NodeId producer);
  std::uint32_t intern_scope(Scope scope);

  const TensorType& type(ValueId v) const { return values[v].type; }

  std::vector<Value> values;
  std::vector<Node> nodes;  // in execution order
  std::vector<Input> inputs;
  std::vector<State> states;
  std::vector<ValueId> outputs;  // what the caller reads after a step; outputs[0] is the loss of a training step
  std::vector<Scope> scopes;

  /// Structure, types, attributes and the kinds of leaves; not names of scopes, not identities of parameters.
  Digest hash() const;

 private:
  std::uint64_t id_;
};

/// Output types of an op; errors carry the op, its inputs' types and the scope.
std::vector<TensorType> infer(const OpDef& op, std::span<const TensorType> inputs, const Attrs& attrs,
                              const Scope& scope, std::span<const RegionPtr> regions = {});

/// The operator's traits, or those of any node in the regions.
bool has_effect(const Node& node);
bool is_ordered(const Node& node);

/// Input and output types of a region.
std::vector<TensorType> input_types(const Graph& region);
std::vector<TensorType> output_types(const Graph& region);

/// Text form, one node a line. `parse(print(g))` gives an equal graph (equal hashes).
std::string print(const Graph& graph);
Graph parse(std::string_view text);

/// Throws Error naming the first broken rule: ids in range, each value defined once and before its use, types as the
/// ops infer them, no state written twice, nodes in the order of their phases; the same for regions.
void verify(const Graph& graph);

}  // namespace undertow::ir
