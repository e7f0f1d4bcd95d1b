// SPDX-License-Identifier: Apache-2.0
// Gradients of control flow. Each replays the forward regions inside new ones and differentiates there, so that what
// they make is control flow again, and has gradients itself. Effects without a result (checks, prints) have happened in
// the forward pass and are left out.
#include "undertow/base/check.h"
#include "undertow/ops/control_record.h"
#include "undertow/ops/ops.h"

namespace undertow::ops::detail {
namespace {

using ir::GradContext;
using Types = std::vector<ir::TensorType>;

bool only_effect(const ir::Node& n) { return n.op->effect && n.outputs.empty(); }

ir::RegionPtr without_effects(const ir::RegionPtr& region) {
  auto copy = std::make_shared<ir::Graph>(*region);
  std::erase_if(copy->nodes, only_effect);
  for (std::size_t n = 0; n < copy->nodes.size(); ++n) {
    for (const auto v : copy->nodes[n].outputs) copy->values[v].producer = static_cast<ir::NodeId>(n);
    for (auto& r : copy->nodes[n].regions) r = without_effects(r);
  }
  return copy;
}

/// The region's nodes once more, in the trace in progress.
Tensors replay(const ir::Graph& region, const Tensors& inputs) {
  std::vector<Tensor> known(region.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) known[region.inputs[i].value] = inputs[i];
  for (const auto& n : region.nodes) {
    if (only_effect(n)) continue;
    Tensors in;
    for (const auto v : n.inputs) in.push_back(known[v]);
    std::vector<ir::RegionPtr> regions;
    for (const auto& r : n.regions) regions.push_back(without_effects(r));
    const Tensors out = apply(*n.op, std::move(in), n.attrs, std::move(regions));
    for (std::size_t i = 0; i < out.size(); ++i) known[n.outputs[i]] = out[i];
  }
  Tensors out;
  for (const auto v : region.outputs) out.push_back(known[v]);
  return out;
}

Tensors part(std::span<const Tensor> all, std::size_t begin, std::size_t end) {
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
}
Tensors joined(Tensors a, const Tensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Tensors picked(std::span<const Tensor> all, const std::vector<std::size_t>& which) {
  Tensors out;
  for (const auto i : which) out.push_back(all[i]);
  return out;
}

/// Handles of their own: a gradient with respect to one of them is that by this use alone.
Tensors copies(const Tensors& tensors) {
  Tensors out;
  for (const auto& t : tensors) out.push_back(copy(t));
  return out;
}

bool differentiable(const Tensor& t) { return is_floating(t.dtype()); }

/// Positions of the outputs that a gradient comes from.
std::vector<std::size_t> given(const GradContext& c, std::size_t begin) {
  std::vector<std::size_t> at;
  for (std::size_t i = begin; i < c.outputs.size() && i < c.grads.size(); ++i)
    if (c.grads[i].defined() && differentiable(c.outputs[i])) at.push_back(i);
  return at;
}

/// Gradients in the dtypes of `wrt`, zeros where there are none.
Tensors all_gradients(const Tensors& values, const Tensors& seeds, const Tensors& wrt) {
  Tensors grads = dispatcher().gradients(values, seeds, wrt);
  for (std::size_t i = 0; i < grads.size(); ++i)
    if (!grads[i].defined()) grads[i] = zeros_like(wrt[i]);
  return grads;
}

/// What the two kinds of loop share: a body with constants and carries, of which some are differentiated.
struct Loop {
  std::size_t consts, carries;
  std::vector<std::size_t> wanted;    // constants
  std::vector<std::size_t> floating;  // carries

  Loop(const GradContext& c, std::size_t num_consts, std::size_t num_carries)
      : consts(num_consts), carries(num_carries) {
    for (std::size_t i = 0; i < consts; ++i)
      if (c.needs[i]) wanted.push_back(i);
    for (std::size_t i = 0; i < carries; ++i)
      if (differentiable(c.inputs[consts + i])) floating.push_back(i);
  }
  /// Of the backward loop: gradients of the final carries, then zeros for those of the constants.
  Tensors start(const GradContext& c) const {
    Tensors init;
    for (const auto i : floating) init.push_back(c.grads[i].defined() ? c.grads[i] : zeros_like(c.outputs[i]));
    for (const auto i : wanted) init.push_back(zeros_like(c.inputs[i]));
    return init;
  }
  /// What that loop gave, as gradients of the node's inputs.
  std::vector<Tensor> result(const GradContext& c, const Tensors& carry) const {
    std::vector<Tensor> grads(c.inputs.size());
    for (std::size_t i = 0; i < floating.size(); ++i) grads[consts + floating[i]] = carry[i];
    for (std::size_t i = 0; i < wanted.size(); ++i) grads[wanted[i]] = carry[floating.size() + i];
    return grads;
  }
  /// One trip back: `carry` as start() has it, `held` the carries that the trip began with. Gives the next carry, then
  /// the gradients of `rows`. The rows' results from `ys` on have the gradients `seeds`.
  Tensors back(const GradContext& c, const Tensors& carry, const Tensors& held, const Tensors& rows,
               const std::vector<std::size_t>& ys, const Tensors& seeds) const {
    const Tensors constants = copies(part(c.inputs, 0, consts));
    const Tensors outs = replay(*c.regions.back(), joined(joined(constants, held), rows));
    Tensors wrt = joined(picked(held, floating), picked(constants, wanted));
    for (const auto& r : rows)
      if (differentiable(r)) wrt.push_back(r);
    Tensors next = all_gradients(joined(picked(outs, floating), picked(outs, ys)),
                                 joined(part(carry, 0, floating.size()), seeds), wrt);
    for (std::size_t i = floating.size(); i < carry.size(); ++i) next[i] = add(carry[i], next[i]);
    return next;
  }
};

}  // namespace

std::vector<Tensor> cond_grad(const GradContext& c) {
  const Tensors operands = part(c.inputs, 1, c.inputs.size());
  const std::vector<std::size_t> from = given(c, 0);
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (c.needs[i + 1]) wanted.push_back(i);
  const auto branch = [&](const ir::Graph& region) {
    return [&](const Tensors& args) {
      const Tensors in = part(args, 0, operands.size());
      return all_gradients(picked(replay(region, in), from), part(args, operands.size(), args.size()),
                           picked(in, wanted));
    };
  };
  const Tensors grads = record_cond(0, c.inputs[0], branch(*c.regions[0]), branch(*c.regions[1]),
                                    joined(operands, picked(c.grads, from)));
  std::vector<Tensor> result(c.inputs.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) result[wanted[i] + 1] = grads[i];
  return result;
}

std::vector<Tensor> while_grad(const GradContext& c) {
  const auto consts = static_cast<std::size_t>(c.attrs.integer("consts"));
  const Loop loop(c, consts, c.inputs.size() - consts);
  const Tensors first = part(c.inputs, consts, c.inputs.size());
  const ir::RegionPtr& body = c.regions[1];
  // The carry: how many trips are left, then as Loop has it. The node's own first carry counts its trips.
  const auto step = [&](const Tensors& carry) {
    const Tensor left = sub(carry[0], std::int64_t{1});
    const Tensors held = record_while(
        0, [&](const Tensors& at) { return less(at[0], left); },
        [&](const Tensors& at) { return replay(*body, joined(part(c.inputs, 0, consts), at)); }, first);
    return joined({left}, loop.back(c, part(carry, 1, carry.size()), copies(held), {}, {}, {}));
  };
  const Tensors end = record_while(
      0, [](const Tensors& carry) { return greater(carry[0], std::int64_t{0}); }, step,
      joined({c.outputs[0]}, loop.start(c)));
  return loop.result(c, part(end, 1, end.size()));
}

std::vector<Tensor> scan_grad(const GradContext& c) {
  const auto consts = static_cast<std::size_t>(c.attrs.integer("consts")),
             carries = static_cast<std::size_t>(c.attrs.integer("carries"));
  const std::size_t num_xs = c.inputs.size() - consts - carries;
  const std::int64_t length = c.attrs.integer("length");
  const ir::RegionPtr body = c.regions[0];
  const Loop loop(c, consts, carries);
  const std::vector<std::size_t> from = given(c, carries);

  // Rows of the loop back: the carries that each trip began with, the xs, the gradients of the ys.
  ScanInputs rows;
  for (std::size_t i = 0; i < carries; ++i)
    rows.types.push_back(rows_of({c.inputs[consts + i].dtype(), c.inputs[consts + i].shape()}, length));
  for (const auto& t : types_of(joined(part(c.inputs, consts + carries, c.inputs.size()), picked(c.grads, from))))
    rows.types.push_back(t);
  auto extended = std::make_shared<ir::Graph>(*body);
  rows.get = [&](std::size_t i) {
    if (i >= carries + num_xs) return c.grads[from[i - carries - num_xs]];
    if (i >= carries) return c.inputs[consts + i];
    // A carry: one of the ys may be it already.
    const ir::ValueId v = body->inputs[consts + i].value;
    for (std::size_t y = carries; y < body->outputs.size(); ++y)
      if (body->outputs[y] == v) return c.outputs[y];
    extended->outputs.push_back(v);
    return c.extend({std::make_shared<ir::Graph>(*extended)}, std::span(&rows.types[i], 1))[0];
  };
  const auto step = [&](const Tensors& carry, const Tensors& x) {
    Tensors next = loop.back(c, carry, part(x, 0, carries), part(x, carries, carries + num_xs), from,
                             part(x, carries + num_xs, x.size()));
    const Tensors of_rows = part(next, carry.size(), next.size());
    next.resize(carry.size());
    return ScanResult{next, of_rows};
  };
  ScanOptions options;
  options.length = length;
  options.reverse = !c.attrs.flag("reverse");
  const ScanResult result = record_scan(0, step, loop.start(c), rows, options);
  std::vector<Tensor> grads = loop.result(c, result.carry);
  std::size_t next = 0;
  for (std::size_t x = 0; x < num_xs; ++x)
    if (differentiable(c.inputs[consts + carries + x])) grads[consts + carries + x] = result.ys[next++];
  return grads;
}

}  // namespace undertow::ops::detail
