// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/plan.h"

#include <algorithm>
#include <map>

#include "undertow/base/memory.h"

namespace undertow::transforms {
namespace {

using ir::NodeId;
using ir::ValueId;

std::size_t bytes_of(const ir::TensorType& t) { return static_cast<std::size_t>(t.shape.numel()) * size_of(t.dtype); }

/// Offsets for blocks that live over an interval of time; best fit among the holes left by those alive.
class Allocator {
 public:
  std::size_t allocate(std::size_t bytes, std::int64_t until) {
    bytes = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    // Holes between live blocks, in order of offset.
    std::size_t at = 0, best = SIZE_MAX, best_size = SIZE_MAX;
    for (const auto& [offset, block] : live_) {
      if (offset - at >= bytes && offset - at < best_size) {
        best = at;
        best_size = offset - at;
      }
      at = offset + block.bytes;
    }
    const std::size_t offset = best != SIZE_MAX ? best : at;
    live_[offset] = {bytes, until};
    high_ = std::max(high_, offset + bytes);
    return offset;
  }
  void free_before(std::int64_t time) {
    for (auto it = live_.begin(); it != live_.end();) it = it->second.until < time ? live_.erase(it) : std::next(it);
  }
  std::size_t high() const { return high_; }

 private:
  struct Block {
    std::size_t bytes;
    std::int64_t until;
  };
  std::map<std::size_t, Block> live_;
  std::size_t high_ = 0;
};

}  // namespace

Plan plan(const ir::Graph& graph, const PlanInput& input) {
  Plan result;
  result.places.resize(graph.values.size());
  const auto end = static_cast<std::int64_t>(graph.nodes.size());

  // A view lives where its source lives.
  std::vector<ValueId> root(graph.values.size());
  for (std::size_t v = 0; v < root.size(); ++v) root[v] = static_cast<ValueId>(v);
  for (const auto& n : graph.nodes)
    if (n.op->view && !n.nest) root[n.outputs[0]] = root[n.inputs[0]];

  std::vector<std::int64_t> last(graph.values.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const auto v : graph.nodes[n].inputs) last[root[v]] = static_cast<std::int64_t>(n);
  for (const auto v : graph.outputs) last[root[v]] = end;

  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    result.places[graph.inputs[i].value] = {Place::kInput, static_cast<std::uint32_t>(i), 0};
  std::vector<std::int64_t> state_of(graph.values.size(), -1);
  for (std::size_t i = 0; i < graph.states.size(); ++i) {
    result.places[graph.states[i].value] = {Place::kState, static_cast<std::uint32_t>(i), 0};
    if (graph.states[i].result != ir::kNoId) state_of[graph.states[i].result] = static_cast<std::int64_t>(i);
  }

  const auto in_place_ok = [&](NodeId n, int output, const ir::State& s) {
    const ValueId old = s.value;
    if (last[old] > static_cast<std::int64_t>(n)) return false;
    if (last[old] < static_cast<std::int64_t>(n)) return true;
    const auto& in = graph.nodes[n].inputs;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (root[in[i]] == old && !(in[i] == old && input.in_place(n, output, static_cast<int>(i)))) return false;
    return true;
  };

  Allocator arena;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    const auto now = static_cast<std::int64_t>(n);
    arena.free_before(now);
    if (node.op->view && !node.nest) {
      result.places[node.outputs[0]] = result.places[node.inputs[0]];
      continue;
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId v = node.outputs[o];
      std::int64_t until = std::max(last[v], now);
      if (const std::int64_t s = state_of[v]; s >= 0) {
        const auto& state = graph.states[static_cast<std::size_t>(s)];
        if (in_place_ok(static_cast<NodeId>(n), static_cast<int>(o), state)) {
          result.places[v] = {Place::kState, static_cast<std::uint32_t>(s), 0};
          continue;
        }
        result.copies.emplace_back(v, static_cast<std::uint32_t>(s));
        until = end;
      }
      result.places[v] = {Place::kArena, 0, arena.allocate(bytes_of(graph.type(v)), until)};
    }
  }
  result.scratch_offset = (arena.high() + 4095) / 4096 * 4096;
  std::size_t scratch = 0;
  for (const auto b : input.scratch_bytes) scratch = std::max(scratch, b);
  result.arena_bytes = result.scratch_offset + scratch;
  return result;
}

}  // namespace undertow::transforms
