// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/control_record.h"

#include <algorithm>
#include <map>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/register.h"

namespace undertow::ops::detail {

using Types = std::vector<ir::TensorType>;
using Region = RecordedRegion;

std::string text(const Types& types) {
  std::string s;
  for (const auto& t : types) s += fmt::format("{}{}{}", s.empty() ? "" : ", ", name_of(t.dtype), t.shape.str());
  return s.empty() ? "nothing" : s;
}

std::string place() {
  const std::string where = dispatcher().where();
  return where.empty() ? "" : "\n" + where;
}

Tensor predicate(const Tensor& p, const char* what) {
  UNDERTOW_CHECK(p.defined(), TypeError, "{} is not a tensor{}", what, place());
  UNDERTOW_CHECK(p.size() == 1, ShapeError, "{} must have one element, got shape {}{}", what, p.shape().str(), place());
  return reshape(cast(p, DType::kBool), {});
}

void check_defined(const Tensors& tensors, const char* what) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    UNDERTOW_CHECK(tensors[i].defined(), TypeError, "{} {} is not a tensor (got None){}", what, i, place());
}

bool check_carry(const char* op, Tensors& carry, const Types& next, const LoopOptions& options, int attempt) {
  const auto differ = [&] {
    throw TypeError(
        fmt::format("ops.{}: the function must return what it is given, but the carry was {} and it returned {}{}", op,
                    text(types_of(carry)), text(next), place()));
  };
  if (carry.size() != next.size()) differ();
  bool changed = false;
  for (std::size_t i = 0; i < carry.size(); ++i) {
    if (carry[i].shape() != next[i].shape) differ();
    if (carry[i].dtype() == next[i].dtype) continue;
    const bool narrows = is_floating(carry[i].dtype()) && !is_floating(next[i].dtype);
    if (i >= options.weak.size() || !options.weak[i] || narrows || attempt > 2) differ();
    carry[i] = cast(carry[i], next[i].dtype);
    changed = true;
  }
  return changed;
}

namespace {

const void* key_of(const Region::Capture& c) {
  return c.parameter.defined() ? c.parameter.impl().get() : c.outer.impl().get();
}

bool writes(const Region& r, const Parameter& p) {
  return std::any_of(r.written.begin(), r.written.end(), [&](const auto& w) { return w.first.impl() == p.impl(); });
}

/// What any of the regions captures: first what none of them writes, then what one does.
struct Captures {
  std::vector<Region::Capture> read, written;
};

/// Gives all regions one order of inputs: read captures, declared inputs (`declared` of them, less those before
/// `extra`), written captures, then the declared inputs from `extra` on.
Captures unite(const std::vector<Region*>& regions, std::size_t extra) {
  Captures all;
  std::vector<const void*> known;
  for (const Region* r : regions)
    for (const auto& c : r->captured) {
      if (std::count(known.begin(), known.end(), key_of(c))) continue;
      known.push_back(key_of(c));
      const bool written =
          c.parameter.defined() &&
          std::any_of(regions.begin(), regions.end(), [&](const Region* other) { return writes(*other, c.parameter); });
      (written ? all.written : all.read).push_back(c);
    }
  for (Region* r : regions) {
    ir::Graph& g = *r->graph;
    const std::size_t declared = g.inputs.size() - r->captured.size();
    std::map<const void*, ir::Input> own;
    for (const auto& c : r->captured)
      for (const auto& i : g.inputs)
        if (i.value == c.value) own[key_of(c)] = i;
    std::vector<ir::Input> given;  // captures stand among the declared ones in order of appearance
    for (const auto& i : g.inputs)
      if (std::none_of(r->captured.begin(), r->captured.end(), [&](const auto& c) { return c.value == i.value; }))
        given.push_back(i);
    UNDERTOW_ASSERT(given.size() == declared && extra <= declared);
    const auto input = [&](const Region::Capture& c) {
      if (const auto it = own.find(key_of(c)); it != own.end()) return it->second;
      ir::Input i{.name = c.parameter.defined() ? c.parameter.name() : "captured", .kind = ir::Input::kArgument};
      i.value = g.new_value({c.outer.dtype(), c.outer.shape()}, ir::kNoId);
      return i;
    };
    std::vector<ir::Input> inputs;
    for (const auto& c : all.read) inputs.push_back(input(c));
    inputs.insert(inputs.end(), given.begin(), given.begin() + static_cast<std::ptrdiff_t>(extra));
    for (const auto& c : all.written) inputs.push_back(input(c));
    inputs.insert(inputs.end(), given.begin() + static_cast<std::ptrdiff_t>(extra), given.end());
    g.inputs = std::move(inputs);
    // What a region does not write leaves it as it came.
    const std::size_t first = all.read.size() + extra;
    std::vector<std::pair<Parameter, ir::ValueId>> after;
    for (std::size_t w = 0; w < all.written.size(); ++w) {
      const Parameter& p = all.written[w].parameter;
      ir::ValueId v = g.inputs[first + w].value;
      for (const auto& [q, now] : r->written)
        if (q.impl() == p.impl()) v = now;
      after.emplace_back(p, v);
    }
    r->written = std::move(after);
  }
  return all;
}

void append_outer(Tensors& inputs, const std::vector<Region::Capture>& captures) {
  for (const auto& c : captures) inputs.push_back(c.outer);
}

const ir::OpDef& op_named(const char* name) {
  register_all();
  return ir::op_set().get(name);
}

}  // namespace

Types types_of(const Tensors& tensors) {
  Types types;
  for (const auto& t : tensors) types.push_back({t.dtype(), t.shape()});
  return types;
}

ir::TensorType row_of(const ir::TensorType& type) {
  ir::TensorType row{type.dtype, {}};
  for (int d = 1; d < type.shape.rank(); ++d) row.shape.push_back(type.shape[d]);
  return row;
}

ir::TensorType rows_of(const ir::TensorType& row, std::int64_t length) {
  ir::TensorType rows{row.dtype, {length}};
  for (const auto n : row.shape) rows.shape.push_back(n);
  return rows;
}

Tensors record_cond(std::uint64_t key, const Tensor& pred, const Branch& then_fn, const Branch& else_fn,
                    const Tensors& operands) {
  Dispatcher& d = dispatcher();
  Region then_region = d.record(types_of(operands), then_fn, key, 0, -1);
  Region else_region = d.record(types_of(operands), else_fn, key, 1, -1);
  const Types a = ir::output_types(*then_region.graph), b = ir::output_types(*else_region.graph);
  UNDERTOW_CHECK(
      a == b, TypeError,
      "ops.cond: both functions must return tensors of the same dtypes and shapes, but the first returned {} "
      "and the second {}{}",
      text(a), text(b), place());
  const Captures captures = unite({&then_region, &else_region}, operands.size());
  for (Region* r : {&then_region, &else_region})
    for (const auto& [_, now] : r->written) r->graph->outputs.push_back(now);
  Tensors inputs{pred};
  append_outer(inputs, captures.read);
  inputs.insert(inputs.end(), operands.begin(), operands.end());
  append_outer(inputs, captures.written);
  Tensors out = apply(op_named("cond"), std::move(inputs), {}, {then_region.graph, else_region.graph});
  for (std::size_t w = 0; w < captures.written.size(); ++w) d.assign(captures.written[w].parameter, out[a.size() + w]);
  out.resize(a.size());
  return out;
}

Tensors record_while(std::uint64_t key, const std::function<Tensor(const Tensors&)>& cond_fn, const Branch& body_fn,
                     Tensors init, const LoopOptions& options) {
  Dispatcher& d = dispatcher();
  // The first carry counts the trips: it keys the draws, and the gradient needs it.
  const auto user = [](const Tensors& args) { return Tensors(args.begin() + 1, args.end()); };
  const auto step = [&](const Tensors& args) {
    Tensors out = body_fn(user(args));
    check_defined(out, "ops.while_loop: result");
    out.insert(out.begin(), add(args[0], std::int64_t{1}));
    return out;
  };
  Types types;
  Region body;
  for (int attempt = 0;; ++attempt) {
    types = types_of(init);
    types.insert(types.begin(), {DType::kInt64, Shape{}});
    body = d.record(types, step, key, 1, 0);
    Types next = ir::output_types(*body.graph);
    next.erase(next.begin());
    if (!check_carry("while_loop", init, next, options, attempt)) break;
  }
  const auto test = [&](const Tensors& args) {
    return Tensors{predicate(cond_fn(user(args)), "ops.while_loop: the condition")};
  };
  Region condition = d.record(types, test, key, 0, 0);
  UNDERTOW_CHECK(condition.written.empty(), TraceError, "ops.while_loop: the condition writes parameter '{}'{}",
                 condition.written[0].first.name(), place());
  const Captures captures = unite({&condition, &body}, types.size());
  for (const auto& [_, now] : body.written) body.graph->outputs.push_back(now);
  Tensors inputs;
  append_outer(inputs, captures.read);
  inputs.push_back(constant_int(0, DType::kInt64));
  inputs.insert(inputs.end(), init.begin(), init.end());
  append_outer(inputs, captures.written);
  const auto consts = static_cast<std::int64_t>(captures.read.size());
  const Tensors out = apply(op_named("while"), std::move(inputs), {{"consts", consts}}, {condition.graph, body.graph});
  for (std::size_t w = 0; w < captures.written.size(); ++w)
    d.assign(captures.written[w].parameter, out[types.size() + w]);
  return {out.begin() + 1, out.begin() + static_cast<std::ptrdiff_t>(types.size())};
}

ScanResult record_scan(std::uint64_t key, const ScanBody& body_fn, Tensors init, const ScanInputs& xs,
                       const ScanOptions& options) {
  Dispatcher& d = dispatcher();
  const std::size_t carries = init.size();
  Types next;
  const auto step = [&](const Tensors& args) {
    const auto first_x = args.begin() + static_cast<std::ptrdiff_t>(carries);
    ScanResult r = body_fn({args.begin(), first_x}, {first_x + 1, args.end()});
    check_defined(r.carry, "ops.scan: carry");
    check_defined(r.ys, "ops.scan: result");
    next = types_of(r.carry);
    Tensors out = std::move(r.carry);
    out.insert(out.end(), r.ys.begin(), r.ys.end());
    return out;
  };
  Region body;
  for (int attempt = 0;; ++attempt) {
    Types types = types_of(init);
    types.push_back({DType::kInt64, Shape{}});  // the row: keys the draws
    for (const auto& t : xs.types) types.push_back(row_of(t));
    body = d.record(types, step, key, 0, static_cast<int>(carries));
    if (!check_carry("scan", init, next, options, attempt)) break;
  }
  const Captures captures = unite({&body}, carries);
  ir::Graph& g = *body.graph;
  std::vector<ir::ValueId> after;
  for (const auto& [_, now] : body.written) after.push_back(now);
  g.outputs.insert(g.outputs.begin() + static_cast<std::ptrdiff_t>(carries), after.begin(), after.end());

  // Rows that the body does not look at are not handed in.
  std::vector<bool> used(g.values.size(), false);
  for (const auto& n : g.nodes)
    for (const auto v : n.inputs) used[v] = true;
  for (const auto v : g.outputs) used[v] = true;
  Tensors inputs;
  append_outer(inputs, captures.read);
  inputs.insert(inputs.end(), init.begin(), init.end());
  append_outer(inputs, captures.written);
  std::vector<ir::Input> kept(g.inputs.begin(), g.inputs.begin() + static_cast<std::ptrdiff_t>(inputs.size()));
  const std::size_t first_x = inputs.size();
  for (std::size_t x = first_x; x < g.inputs.size(); ++x) {
    if (!used[g.inputs[x].value]) continue;
    kept.push_back(g.inputs[x]);
    inputs.push_back(x == first_x ? arange(options.length) : xs.get(x - first_x - 1));
  }
  g.inputs = std::move(kept);

  const std::size_t all = carries + after.size();
  Tensors out = apply(op_named("scan"), std::move(inputs),
                      {{"consts", static_cast<std::int64_t>(captures.read.size())},
                       {"carries", static_cast<std::int64_t>(all)},
                       {"length", options.length},
                       {"reverse", options.reverse}},
                      {body.graph});
  for (std::size_t w = 0; w < after.size(); ++w) d.assign(captures.written[w].parameter, out[carries + w]);
  const auto begin = out.begin();
  return {{begin, begin + static_cast<std::ptrdiff_t>(carries)}, {begin + static_cast<std::ptrdiff_t>(all), out.end()}};
}

}  // namespace undertow::ops::detail
