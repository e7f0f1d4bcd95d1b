// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/compile.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>
#include <unordered_map>

#include "undertow/base/check.h"
#include "undertow/ir/op_set.h"
#include "undertow/runtime/context.h"
#include "undertow/runtime/counters.h"
#include "undertow/runtime/session.h"
#include "undertow/transforms/pipeline.h"
#include "undertow/transforms/views.h"

namespace undertow::runtime {
namespace {

/// An output that is an input or a state would be read after it has changed: it is copied within the step.
void copy_leaf_outputs(ir::Graph& graph) {
  const ir::OpDef& copy = ir::op_set().get("copy");
  for (auto& v : graph.outputs) {
    if (graph.values[transforms::viewed(graph, v)].producer != ir::kNoId) continue;
    const ir::NodeId n = graph.add_node(copy, {v}, {});
    graph.nodes[n].attrs.set("output", true);  // kept by simplify
    v = graph.nodes[n].outputs[0];
  }
}

}  // namespace

CompiledGraph::CompiledGraph(ir::Graph graph, backend::Backend& device, StepOutputs outputs)
    : graph_(std::move(graph)), device_(device), outputs_(outputs) {
  for (auto& i : graph_.inputs) i.captured = {};  // tensors belong to the trace, not to the program
  for (auto& s : graph_.states) s.parameter = {};
  copy_leaf_outputs(graph_);
  transforms::optimize(graph_, {.fuse = device_.caps().fuse, .channel_block = device_.caps().channel_block});
  casts_ = transforms::find_casts(graph_);
  for (const auto& c : casts_) {
    auto& number = c.edge == transforms::Cast::kInside ? counters().inside_casts : counters().edge_casts;
    number.fetch_add(1, std::memory_order_relaxed);
    counters().cast_bytes.fetch_add(c.bytes, std::memory_order_relaxed);
  }

  program_.kernels = lower(graph_, device_, origins_);
  transforms::PlanInput input;
  for (const auto& k : program_.kernels) input.scratch_bytes.push_back(k ? k->scratch_bytes() : 0);
  input.in_place = [this](ir::NodeId n, int output, int in) {
    return program_.kernels[n] && program_.kernels[n]->in_place(output, in);
  };
  plan_ = transforms::plan(graph_, input);
  arena_ = make_ref<Storage>(plan_.arena_bytes);
  std::memset(arena_->data(), 0, arena_->bytes());  // touched once, here

  int captures = 0, columns = 0;
  for (const auto& i : graph_.inputs) {
    capture_index_.push_back(i.kind == ir::Input::kCapture ? captures++ : -1);
    column_index_.push_back(i.kind == ir::Input::kBatch ? columns++ : -1);
  }
  num_columns_ = static_cast<std::size_t>(columns);
  for (const auto& n : graph_.nodes) {
    const auto& kernel = program_.kernels[reads_batch_.size()];
    serial_ = serial_ && !ir::is_ordered(n) && (!kernel || kernel->serial());
    bool reads = false;
    for (const auto v : n.inputs) {
      const auto& p = plan_.places[v];
      reads |= p.kind == transforms::Place::kInput && column_index_[p.index] >= 0;
    }
    reads_batch_.push_back(reads);
  }
}

bool CompiledGraph::writes() const {
  return std::any_of(graph_.states.begin(), graph_.states.end(), [](const auto& s) { return s.result != ir::kNoId; });
}

void* CompiledGraph::address(ir::ValueId v, const Addresses& a, std::size_t variant) const {
  const auto& p = plan_.places[v];
  switch (p.kind) {
    case transforms::Place::kArena: return static_cast<std::byte*>(arena_->data()) + p.offset;
    case transforms::Place::kState: return a.states[p.index];
    case transforms::Place::kInput:
      if (capture_index_[p.index] >= 0) return a.captures[static_cast<std::size_t>(capture_index_[p.index])];
      if (column_index_[p.index] >= 0)
        return a.columns[variant * num_columns_ + static_cast<std::size_t>(column_index_[p.index])];
      return const_cast<std::int64_t*>(&step_);
    case transforms::Place::kNone: break;
  }
  return nullptr;
}

backend::Program& CompiledGraph::bind(const Addresses& a) {
  if (is_bound_ && bound_ == a) return program_;
  for (const auto& k : program_.kernels)
    if (k) k->unbind();
  copies_.clear();
  program_.variants.assign(a.variants, {});
  void* scratch = static_cast<std::byte*>(arena_->data()) + plan_.scratch_offset;
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (!program_.kernels[n]) continue;
    const ir::Node& node = graph_.nodes[n];
    backend::Instr instr;
    for (std::size_t k = 0; k < program_.variants.size(); ++k) {
      if (k == 0 || reads_batch_[n]) {
        std::vector<void*> args;
        for (const auto v : node.inputs) args.push_back(address(v, a, k));
        for (const auto v : node.outputs) args.push_back(address(v, a, k));
        args.push_back(scratch);
        instr = program_.kernels[n]->bind(args);
      }
      auto& variant = program_.variants[k];
      (node.phase == ir::Phase::kCompute  ? variant.compute
       : node.phase == ir::Phase::kCommit ? variant.commit
                                          : variant.always)
          .push_back(instr);
    }
  }
  for (const auto& [v, s] : plan_.copies) {
    const auto& t = graph_.type(v);
    Copy& c = copies_.emplace_back(
        Copy{a.states[s], address(v, a, 0), static_cast<std::size_t>(t.shape.numel()) * size_of(t.dtype)});
    for (auto& variant : program_.variants)
      (graph_.states[s].always ? variant.always : variant.commit)
          .push_back({[](void* p, ir::StepError*) {
                        const auto& copy = *static_cast<Copy*>(p);
                        std::memcpy(copy.to, copy.from, copy.bytes);
                      },
                      &c});
  }
  program_.step_counter = &step_;
  program_.learning_rate = a.learning_rate;
  program_.loss_scale = a.loss_scale;
  if (outputs_ != StepOutputs::kPlain) {
    const ir::ValueId loss = graph_.outputs.at(0);
    program_.loss = address(loss, a, 0);
    program_.loss_count = graph_.type(loss).shape.numel();
  }
  if (outputs_ == StepOutputs::kGuardedLoss)
    program_.skip = static_cast<const bool*>(address(graph_.outputs.at(1), a, 0));
  bound_ = a;
  is_bound_ = true;
  return program_;
}

void CompiledGraph::read_outputs(std::vector<Tensor>& out) const {
  out.clear();
  for (const auto v : graph_.outputs) {
    const auto& t = graph_.type(v);
    Tensor copy(t.dtype, t.shape);
    if (copy.nbytes()) std::memcpy(copy.data(), address(v, bound_, 0), copy.nbytes());
    out.push_back(std::move(copy));
  }
}

CompiledGraph::Addresses CompiledStep::addresses(std::vector<std::byte*> columns, const StepFunction& step) const {
  CompiledGraph::Addresses a;
  for (const auto& s : states) a.states.push_back(s.data());
  for (const auto& c : captures) a.captures.push_back(c.data());
  a.columns = std::move(columns);
  if (step.learning_rate.defined()) a.learning_rate = step.learning_rate.data_as<float>();
  if (step.loss_scale.defined()) a.loss_scale = step.loss_scale.data_as<float>();
  return a;
}

const CompiledGraph::Addresses& CompiledStep::addresses(Channel& channel, const StepFunction& step) {
  if (generation_ == channel.memory_generation()) return of_channel_;
  std::vector<std::byte*> columns;
  generation_ = channel.snapshot(columns);
  of_channel_ = addresses(std::move(columns), step);
  of_channel_.variants = static_cast<std::size_t>(channel.num_slots());
  return of_channel_;
}

namespace {

using Key = std::pair<const TensorImpl*, std::string>;

struct Programs {
  std::mutex mutex;
  std::unordered_map<Digest, std::shared_ptr<CompiledGraph>, DigestHash> entries;
  /// The newest first, with the parameters that they were made for: equal graphs may have others. Addresses outlive
  /// what they point to, so names go with them.
  std::deque<std::pair<std::set<Key>, std::weak_ptr<CompiledGraph>>> newest;
};
Programs& programs() {
  static auto* p = new Programs;
  return *p;
}
constexpr std::size_t kMaxPrograms = 64;

/// With the mutex held.
void remember(const CompiledStep& step) {
  std::set<Key> keys;
  for (const Tensor& t : step.states)
    if (t.is_parameter()) keys.emplace(t.impl().get(), Parameter::of(t).name());
  auto& newest = programs().newest;
  std::erase_if(newest, [&](const auto& e) { return e.second.expired() || e.first == keys; });
  newest.emplace_front(std::move(keys), step.compiled);
  if (newest.size() > kMaxPrograms) newest.pop_back();
}

}  // namespace

std::shared_ptr<CompiledStep> compile(Trace& trace, StepOutputs outputs) {
  trace.finish();
  const ir::Graph& g = trace.graph();
  auto step = std::make_shared<CompiledStep>();
  for (const auto& s : g.states) step->states.push_back(s.parameter);
  for (const auto& i : g.inputs)
    if (i.kind == ir::Input::kCapture) step->captures.push_back(i.captured);

  Hasher h;
  const Digest d = g.hash();
  h.add(d.a).add(d.b).add(std::string_view(context().device)).add(outputs);
  const Digest key = h.digest();
  const std::lock_guard lock(programs().mutex);
  if (const auto it = programs().entries.find(key); it != programs().entries.end()) {
    step->compiled = it->second;
    counters().program_hits.fetch_add(1, std::memory_order_relaxed);
    remember(*step);
    return step;
  }
  if (programs().entries.size() >= kMaxPrograms)
    std::erase_if(programs().entries, [](const auto& e) { return e.second.use_count() == 1; });
  step->compiled = std::make_shared<CompiledGraph>(g, backend::get_backend(context().device), outputs);
  counters().compiles.fetch_add(1, std::memory_order_relaxed);
  programs().entries[key] = step->compiled;
  remember(*step);
  return step;
}

std::shared_ptr<const CompiledGraph> newest_program(const std::vector<Parameter>& parameters) {
  const std::lock_guard lock(programs().mutex);
  std::shared_ptr<const CompiledGraph> best;
  for (const auto& [keys, weak] : programs().newest) {
    const std::shared_ptr<const CompiledGraph> program = weak.lock();
    const auto uses = [&](const Parameter& p) { return keys.contains({p.impl().get(), p.name()}); };
    if (!program || std::none_of(parameters.begin(), parameters.end(), uses)) continue;
    if (program->writes()) return program;
    if (!best) best = program;
  }
  return best;
}

}  // namespace undertow::runtime
