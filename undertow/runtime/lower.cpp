// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/lower.h"

#include "undertow/base/check.h"
#include "undertow/ir/op_set.h"
#include "undertow/transforms/plan.h"
#include "undertow/transforms/views.h"

namespace undertow::runtime {
namespace {

using Address = backend::RegionBody::Address;
using ir::ValueId;

std::size_t bytes_of(const ir::TensorType& t) { return static_cast<std::size_t>(t.shape.numel()) * size_of(t.dtype); }

/// Makes one region of a control-flow node ready to run; backend.h says which argument is what.
class BodyMaker {
 public:
  BodyMaker(const ir::Node& node, std::size_t region, backend::Backend& device, std::vector<Origin>& origins)
      : g_(*node.regions[region]), device_(device), origins_(origins), num_inputs_(g_.inputs.size()) {
    for (const auto& t : ir::input_types(g_)) body_.input_bytes.push_back(bytes_of(t));
    for (const auto& t : ir::output_types(g_)) body_.output_bytes.push_back(bytes_of(t));
    body_.before.resize(g_.outputs.size(), false);
    if (const auto* consts = node.attrs.find("consts")) {  // a loop
      const bool body = region + 1 == node.regions.size();
      const auto* carries = node.attrs.find("carries");
      consts_ = static_cast<std::size_t>(std::get<std::int64_t>(*consts));
      if (body) carries_ = carries ? static_cast<std::size_t>(std::get<std::int64_t>(*carries)) : g_.outputs.size();
    } else {
      results_ = true;
    }
  }

  backend::RegionBody make() {
    find_leaves();
    place_outputs();
    const auto first = static_cast<std::int32_t>(origins_.size());
    auto kernels = lower(g_, device_, origins_);
    transforms::PlanInput input;
    for (const auto& k : kernels) input.scratch_bytes.push_back(k ? k->scratch_bytes() : 0);
    input.in_place = [&](ir::NodeId n, int output, int in) { return kernels[n] && kernels[n]->in_place(output, in); };
    plan_ = transforms::plan(g_, input);
    body_.arena_bytes = plan_.arena_bytes;
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      if (!kernels[n]) continue;
      backend::RegionBody::Call call;
      for (const auto v : g_.nodes[n].inputs) call.args.push_back(address(v));
      for (const auto v : g_.nodes[n].outputs) call.args.push_back(address(v));
      call.args.push_back({Address::kArena, 0, plan_.scratch_offset});
      call.node = g_.nodes[n].regions.empty() ? first + static_cast<std::int32_t>(n) : -1;
      call.kernel = std::move(kernels[n]);
      body_.calls.push_back(std::move(call));
    }
    for (const auto& [v, s] : plan_.copies) copy({Address::kArgument, state_argument_[s], 0}, v);
    for (const auto& [v, argument] : late_) copy({Address::kArgument, argument, 0}, v);
    for (const auto v : outputs_) body_.outputs.push_back(address(v));
    return std::move(body_);
  }

 private:
  /// Carries become states: the planner then writes them in place where it can.
  void find_leaves() {
    outputs_ = g_.outputs;
    g_.outputs.clear();
    std::vector<ir::Input> inputs;
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) {
      if (i >= consts_ && i < consts_ + carries_) {
        g_.states.push_back({.name = g_.inputs[i].name, .value = g_.inputs[i].value});
        state_argument_.push_back(static_cast<std::uint32_t>(i));
      } else {
        inputs.push_back(g_.inputs[i]);
        input_argument_.push_back(static_cast<std::uint32_t>(i));
      }
    }
    g_.inputs = std::move(inputs);
  }

  bool is_carry(ValueId v) const {
    for (std::size_t c = 0; c < carries_; ++c)
      if (g_.states[c].value == v) return true;
    return false;
  }

  void place_outputs() {
    std::vector<bool> taken(g_.values.size(), false);
    for (std::size_t j = 0; j < outputs_.size(); ++j) {
      ValueId& v = outputs_[j];
      const bool carry = j < carries_;
      if (carry && v == g_.states[j].value) continue;  // stays as it is
      if (!carry && carries_ > 0 && is_carry(v)) {
        body_.before[j] = true;
        continue;
      }
      if (is_carry(transforms::viewed(g_, v))) {  // which may be overwritten before it is read
        const ir::NodeId n = g_.add_node(ir::op_set().get("copy"), {v}, {});
        v = g_.nodes[n].outputs[0];
        taken.resize(g_.values.size(), false);
      }
      if (!carry && !results_) {
        g_.outputs.push_back(v);  // read where it is
        continue;
      }
      const auto home = static_cast<std::uint32_t>(carry ? consts_ + j : num_inputs_ + j);
      const bool own = transforms::viewed(g_, v) == v && g_.values[v].producer != ir::kNoId && !taken[v];
      if (!own) {
        g_.outputs.push_back(v);
        late_.emplace_back(v, home);
        continue;
      }
      taken[v] = true;
      if (carry) {
        g_.states[j].result = v;
      } else {
        g_.add_state({.name = "result", .result = v}, ir::TensorType(g_.type(v)));
        state_argument_.push_back(home);
        taken.resize(g_.values.size(), false);
      }
    }
  }

  Address address(ValueId v) const {
    const transforms::Place& p = plan_.places[v];
    switch (p.kind) {
      case transforms::Place::kInput: return {Address::kArgument, input_argument_[p.index], 0};
      case transforms::Place::kState: return {Address::kArgument, state_argument_[p.index], 0};
      default: return {Address::kArena, 0, p.offset};
    }
  }
  void copy(const Address& to, ValueId v) {
    if (const std::size_t bytes = bytes_of(g_.type(v))) body_.copies.push_back({to, address(v), bytes});
  }

  ir::Graph g_;  // a copy: planning adds to it
  backend::Backend& device_;
  std::vector<Origin>& origins_;
  std::size_t num_inputs_, consts_ = 0, carries_ = 0;
  bool results_ = false;  // the outputs are the node's
  std::vector<ValueId> outputs_;
  std::vector<std::pair<ValueId, std::uint32_t>> late_;  // copied to an argument after the last node
  std::vector<std::uint32_t> input_argument_, state_argument_;
  transforms::Plan plan_;
  backend::RegionBody body_;
};

}  // namespace

std::vector<std::unique_ptr<backend::Kernel>> lower(const ir::Graph& graph, backend::Backend& device,
                                                    std::vector<Origin>& origins) {
  for (const auto& n : graph.nodes) origins.push_back({n.op->name, graph.scopes[n.scope]});
  auto kernels = device.make_kernels(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    if (node.regions.empty()) continue;
    std::vector<backend::RegionBody> bodies;
    for (std::size_t r = 0; r < node.regions.size(); ++r) bodies.push_back(BodyMaker(node, r, device, origins).make());
    kernels[n] = device.make_control(node, std::move(bodies));
  }
  return kernels;
}

}  // namespace undertow::runtime
