// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/regions.h"

#include <algorithm>

#include "undertow/transforms/simplify.h"

namespace undertow::transforms {
namespace {

/// How a node's inputs and outputs stand to those of its regions: input `first` + i is input i of every region, and
/// output j is output j of the regions from `paired` on. The inputs from `consts` on are the carries, which continue as
/// the first outputs.
struct Layout {
  std::size_t first = 0, consts = 0, carries = 0, paired = 0;
};

Layout layout_of(const ir::Node& node) {
  const auto integer = [&](const char* name) { return static_cast<std::size_t>(node.attrs.integer(name)); };
  if (node.op->num_regions == 1) return {0, integer("consts"), integer("carries"), 0};   // scan
  if (node.attrs.find("consts")) return {0, integer("consts"), node.outputs.size(), 1};  // while
  return {1, node.inputs.size() - 1, 0, 0};                                              // cond
}

/// Whether each input of a region matters, given which of its outputs do.
std::vector<bool> used_inputs(const ir::Graph& region, const std::vector<bool>& outputs) {
  std::vector<bool> live(region.values.size(), false);
  for (std::size_t j = 0; j < region.outputs.size(); ++j)
    if (outputs[j]) live[region.outputs[j]] = true;
  for (std::size_t n = region.nodes.size(); n-- > 0;) {
    const ir::Node& node = region.nodes[n];
    bool keep = ir::has_effect(node);
    for (const auto v : node.outputs) keep = keep || live[v];
    if (keep)
      for (const auto v : node.inputs) live[v] = true;
  }
  std::vector<bool> used;
  for (const auto& i : region.inputs) used.push_back(live[i.value]);
  return used;
}

template <typename T>
void filter(std::vector<T>& items, const std::vector<bool>& keep, std::size_t first = 0) {
  std::vector<T> kept(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(first));
  for (std::size_t i = first; i < items.size(); ++i)
    if (keep[i - first]) kept.push_back(std::move(items[i]));
  items = std::move(kept);
}

}  // namespace

void for_each_region(ir::Graph& graph, void (*pass)(ir::Graph&)) {
  for (auto& node : graph.nodes)
    for (auto& region : node.regions) {
      auto copy = std::make_shared<ir::Graph>(*region);
      pass(*copy);
      region = std::move(copy);
    }
}

void prune_regions(ir::Node& node, const std::vector<bool>& live) {
  Layout layout = layout_of(node);
  std::vector<bool> outputs, inputs;
  for (const auto v : node.outputs) outputs.push_back(live[v]);
  for (bool again = true; again;) {
    again = false;
    inputs.assign(node.inputs.size() - layout.first, false);
    for (std::size_t r = 0; r < node.regions.size(); ++r) {
      const ir::Graph& region = *node.regions[r];
      const auto used =
          used_inputs(region, r < layout.paired ? std::vector<bool>(region.outputs.size(), true) : outputs);
      for (std::size_t i = 0; i < used.size(); ++i) inputs[i] = inputs[i] || used[i];
    }
    for (std::size_t c = 0; c < layout.carries; ++c) {
      if (inputs[layout.consts + c] && !outputs[c]) outputs[c] = again = true;
      inputs[layout.consts + c] = outputs[c];
    }
  }
  const auto all = [](const std::vector<bool>& v) { return std::find(v.begin(), v.end(), false) == v.end(); };
  if (all(outputs) && all(inputs)) return;
  for (std::size_t r = 0; r < node.regions.size(); ++r) {
    auto copy = std::make_shared<ir::Graph>(*node.regions[r]);
    if (r >= layout.paired) filter(copy->outputs, outputs);
    remove_dead(*copy);
    filter(copy->inputs, inputs);
    node.regions[r] = std::move(copy);
  }
  const auto counted = [](const std::vector<bool>& v, std::size_t begin, std::size_t n) {
    const auto at = v.begin() + static_cast<std::ptrdiff_t>(begin);
    return static_cast<std::int64_t>(std::count(at, at + static_cast<std::ptrdiff_t>(n), true));
  };
  if (node.attrs.find("consts")) node.attrs.set("consts", counted(inputs, 0, layout.consts));
  if (node.attrs.find("carries")) node.attrs.set("carries", counted(outputs, 0, layout.carries));
  filter(node.outputs, outputs);
  filter(node.inputs, inputs, layout.first);
}

}  // namespace undertow::transforms
