// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/branches.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"

namespace undertow::runtime {
namespace {

constexpr std::size_t kMaxDecisions = 6;

/// The decisions of one pass through the function: those that are given, then true for each new one.
struct Decisions {
  const Trace* trace;
  std::vector<bool> ways;
  std::size_t given = 0, next = 0;
  std::vector<Tensor> conditions;  // by decision
};
thread_local Decisions* deciding = nullptr;

class Explorer {
 public:
  Explorer(Trace& trace, const std::function<std::vector<Tensor>()>& f)
      : trace_(trace), f_(f), start_(trace.snapshot()) {}

  std::vector<Tensor> run(std::vector<bool> given) {
    trace_.rewind(start_);
    Decisions d{&trace_, std::move(given)};
    d.given = d.ways.size();
    std::vector<Tensor> outputs;
    {
      Decisions* const before = std::exchange(deciding, &d);
      const Restore restore{before};
      outputs = f_();
    }
    // The last decision first: each one is merged with all that lies behind its other way.
    for (std::size_t i = d.ways.size(); i-- > d.given;) {
      const Trace::Snapshot then = trace_.snapshot();
      std::vector<bool> other(d.ways.begin(), d.ways.begin() + static_cast<std::ptrdiff_t>(i));
      other.push_back(false);
      const std::vector<Tensor> otherwise = run(std::move(other));
      outputs = merge(d.conditions[i], outputs, otherwise);
      trace_.select_writes(d.conditions[i], then, trace_.snapshot());
    }
    return outputs;
  }

 private:
  struct Restore {
    Decisions* before;
    ~Restore() { deciding = before; }
  };

  static std::vector<Tensor> merge(const Tensor& ok, const std::vector<Tensor>& then,
                                   const std::vector<Tensor>& otherwise) {
    UNDERTOW_CHECK(then.size() == otherwise.size(), TypeError,
                   "the compiled function returns {} tensors where a condition on the gradients holds, and {} where it "
                   "does not; it must return the same",
                   then.size(), otherwise.size());
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < then.size(); ++i) {
      UNDERTOW_CHECK(then[i].dtype() == otherwise[i].dtype() && then[i].shape() == otherwise[i].shape(), TypeError,
                     "output {} of the compiled function is {}{} where a condition on the gradients holds, and {}{} "
                     "where it does not",
                     i, name_of(then[i].dtype()), then[i].shape().str(), name_of(otherwise[i].dtype()),
                     otherwise[i].shape().str());
      out.push_back(ops::select(ok, then[i], otherwise[i]));
    }
    return out;
  }

  Trace& trace_;
  const std::function<std::vector<Tensor>()>& f_;
  const Trace::Snapshot start_;
};

}  // namespace

std::vector<Tensor> trace_branches(Trace& trace, const std::function<std::vector<Tensor>()>& f) {
  return Explorer(trace, f).run({});
}

std::optional<bool> decide(const Tensor& condition) {
  if (!deciding || deciding->trace != current_trace() || condition.size() != 1) return std::nullopt;
  if (!current_trace()->is_flag(condition)) return std::nullopt;
  Decisions& d = *deciding;
  const std::size_t i = d.next++;
  UNDERTOW_CHECK(i < kMaxDecisions, TraceError,
                 "the compiled function branches on flags of its gradients more than {} times. Select between tensors "
                 "with ops.where, between functions with ops.cond, and loop with ops.while_loop",
                 kMaxDecisions);
  if (i == d.ways.size()) d.ways.push_back(true);
  d.conditions.push_back(ops::reshape(ops::cast(condition, DType::kBool), {}));
  return d.ways[i];
}

// ---- what a trace knows of it

Trace::Snapshot Trace::snapshot() const {
  Snapshot s;
  for (const auto& [impl, entry] : states_) s.newest[impl] = entry.current;
  s.frames = frames_;
  return s;
}

ir::ValueId Trace::first_version(const TensorImpl* parameter) const {
  const std::size_t i = states_.at(parameter).index;
  return outer_ ? captured_[i].value : graph_.states[i].value;
}

void Trace::rewind(const Snapshot& to) {
  for (auto& [impl, entry] : states_) {
    const auto known = to.newest.find(impl);
    entry.current = known != to.newest.end() ? known->second : first_version(impl);
  }
  frames_ = to.frames;
}

void Trace::select_writes(const Tensor& ok, const Snapshot& then, const Snapshot& otherwise) {
  UNDERTOW_ASSERT(mode_ == Mode::kCompile);
  for (auto& [impl, entry] : states_) {
    const auto in = [&, key = impl](const Snapshot& s) {
      const auto known = s.newest.find(key);
      return known != s.newest.end() ? known->second : first_version(key);
    };
    const ir::ValueId a = in(then), b = in(otherwise);
    entry.current = a == b ? a : value_of(ops::select(ok, tensor_of(a), tensor_of(b)));
  }
}

void Trace::mark_flag(const Tensor& flag) { flags_.insert(value_of(flag)); }

bool Trace::is_flag(const Tensor& tensor) const {
  return tensor.is_symbolic() && tensor.impl()->symbol.graph == graph_.id() && is_flag(tensor.impl()->symbol.value);
}

bool Trace::is_flag(ir::ValueId value) const {
  constexpr std::array<std::string_view, 9> kLogic = {"logical_not", "logical_and", "logical_or", "equal", "not_equal",
                                                      "cast",        "reshape",     "copy",       "select"};
  if (flags_.contains(value)) return true;
  const ir::NodeId n = graph_.values[value].producer;
  if (n == ir::kNoId) return false;
  const ir::Node& node = graph_.nodes[n];
  const auto known = [&](ir::ValueId v) {
    const ir::NodeId producer = graph_.values[v].producer;
    return is_flag(v) || (producer != ir::kNoId && graph_.nodes[producer].inputs.empty());  // a constant
  };
  return std::find(kLogic.begin(), kLogic.end(), node.op->name) != kLogic.end() && !node.inputs.empty() &&
         std::all_of(node.inputs.begin(), node.inputs.end(), known) &&
         std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId v) { return is_flag(v); });
}

void write_if(const Tensor& ok, const std::function<void()>& f) {
  Trace* trace = current_trace();
  if (!trace || trace->mode() == Trace::Mode::kEager) {
    if (ok.item<bool>()) f();
    return;
  }
  const Trace::Snapshot before = trace->snapshot();
  f();
  trace->select_writes(ok, trace->snapshot(), before);
}

}  // namespace undertow::runtime
