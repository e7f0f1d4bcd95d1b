// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/check.h"
#include "undertow/ir/names.h"

namespace undertow::ir {
namespace {

std::string text(const TensorType& t) { return fmt::format("{}{}", undertow::name_of(t.dtype), t.shape.str()); }

/// The rules of one loop nest, against the types of its node's inputs and outputs.
class NestVerifier {
 public:
  NestVerifier(const LoopNest& nest, std::vector<TensorType> in, std::vector<TensorType> out)
      : n_(nest), in_(std::move(in)), out_(std::move(out)), stored_(out_.size()) {}

  void run() {
    UNDERTOW_CHECK(n_.num_outer >= 0 && n_.num_outer <= n_.rank(), Error, "{} outer dims of {}", n_.num_outer,
                   n_.rank());
    for (const auto e : n_.extents) UNDERTOW_CHECK(e > 0, Error, "a loop extent is {}", e);
    UNDERTOW_CHECK(n_.num_inputs == static_cast<int>(in_.size()) && n_.num_outputs == static_cast<int>(out_.size()),
                   Error, "the nest has {} inputs and {} outputs, the node {} and {}", n_.num_inputs, n_.num_outputs,
                   in_.size(), out_.size());
    std::size_t results = 0;
    for (const auto& s : n_.stages) results += s.results.size();
    UNDERTOW_CHECK(n_.num_locals >= 0 && static_cast<std::size_t>(n_.num_locals) <= results, Error,
                   "{} locals, of which {} can be set", n_.num_locals, results);
    locals_.resize(static_cast<std::size_t>(n_.num_locals));
    for (std::size_t i = 0; i < n_.stages.size(); ++i) {
      try {
        check_stage(n_.stages[i]);
      } catch (const Error& e) {
        throw Error(fmt::format("stage {}: {}", i, e.what()));
      }
    }
    for (std::size_t i = 0; i < stored_.size(); ++i) UNDERTOW_CHECK(stored_[i], Error, "output {} is never stored", i);
  }

 private:
  struct Local {
    bool set = false;
    DType dtype = DType::kFloat32;
  };

  void check_access(const Access& a, const std::vector<TensorType>& buffers, DType dtype, bool inner,
                    const char* what) const {
    UNDERTOW_CHECK(a.buffer >= 0 && a.buffer < static_cast<int>(buffers.size()), Error, "{} of buffer {}, there are {}",
                   what, a.buffer, buffers.size());
    const TensorType& type = buffers[static_cast<std::size_t>(a.buffer)];
    UNDERTOW_CHECK(dtype == type.dtype, Error, "{} of buffer {} as {}, it holds {}", what, a.buffer,
                   undertow::name_of(dtype), undertow::name_of(type.dtype));
    UNDERTOW_CHECK(static_cast<int>(a.strides.size()) == n_.rank(), Error,
                   "{} of buffer {} has {} strides for {} loops", what, a.buffer, a.strides.size(), n_.rank());
    // In 128 bits: a nest that was read from text may hold any number.
    __extension__ using Wide = __int128;
    Wide low = a.offset, high = a.offset;
    for (int d = 0; d < (inner ? n_.rank() : n_.num_outer); ++d) {
      const Wide reach = Wide{a.strides[d]} * (n_.extents[d] - 1);
      (reach < 0 ? low : high) += reach;
    }
    UNDERTOW_CHECK(low >= 0 && high < type.shape.numel(), Error, "{} of buffer {} reaches elements {} to {} of {}",
                   what, a.buffer, low, high, type.shape.numel());
  }

  Local& local(int i) {
    UNDERTOW_CHECK(i >= 0 && i < n_.num_locals, Error, "local {} of {}", i, n_.num_locals);
    return locals_[static_cast<std::size_t>(i)];
  }

  void check_stage(const Stage& s) {
    UNDERTOW_CHECK(s.expr.inputs.size() == s.loads.size() + s.locals.size(), Error,
                   "the expression has {} inputs, the stage {} loads and {} locals", s.expr.inputs.size(),
                   s.loads.size(), s.locals.size());
    for (std::size_t i = 0; i < s.loads.size(); ++i) check_access(s.loads[i], in_, s.expr.inputs[i], s.inner, "load");
    for (std::size_t i = 0; i < s.locals.size(); ++i) {
      const Local& l = local(s.locals[i]);
      const DType dtype = s.expr.inputs[s.loads.size() + i];
      UNDERTOW_CHECK(l.set, Error, "local {} is read before it is set", s.locals[i]);
      UNDERTOW_CHECK(l.dtype == dtype, Error, "local {} is {}, read as {}", s.locals[i], undertow::name_of(l.dtype),
                     undertow::name_of(dtype));
    }
    for (std::size_t i = 0; i < s.expr.insts.size(); ++i) check_inst(s.expr, static_cast<std::int32_t>(i));
    UNDERTOW_CHECK(s.results.size() == s.expr.results.size(), Error, "{} results for {} results of the expression",
                   s.results.size(), s.expr.results.size());
    for (std::size_t i = 0; i < s.results.size(); ++i) check_result(s, s.results[i], s.expr.results[i]);
  }

  static void check_inst(const Expr& e, std::int32_t id) {
    const ExprInst& inst = e.insts[static_cast<std::size_t>(id)];
    const int count = operand_count(inst.op);
    int given = 0;
    for (const auto operand : {inst.a, inst.b, inst.c}) {
      UNDERTOW_CHECK(operand < id, Error, "v{} uses v{} before it is defined", id, operand);
      given += operand >= 0;
      UNDERTOW_CHECK(operand < 0 || given <= count, Error, "v{}: {} takes {} operands", id, name_of(inst.op), count);
    }
    UNDERTOW_CHECK(given == count, Error, "v{}: {} takes {} operands, got {}", id, name_of(inst.op), count, given);
    const auto type = [&](std::int32_t operand) { return e.insts[static_cast<std::size_t>(operand)].dtype; };
    const bool compares = inst.op >= Opcode::kEq && inst.op <= Opcode::kGe;
    bool good = true;
    switch (inst.op) {
      case Opcode::kInput:
        UNDERTOW_CHECK(inst.imm >= 0 && inst.imm < static_cast<std::int64_t>(e.inputs.size()), Error,
                       "v{} is input {} of {}", id, inst.imm, e.inputs.size());
        good = inst.dtype == compute_type(e.inputs[static_cast<std::size_t>(inst.imm)]);
        break;
      case Opcode::kIndex: good = inst.dtype == DType::kInt64; break;
      case Opcode::kSelect:
        good = type(inst.a) == DType::kBool && type(inst.b) == inst.dtype && type(inst.c) == inst.dtype;
        break;
      case Opcode::kRandom:
        good = inst.dtype == DType::kFloat32 && type(inst.a) == DType::kUInt64 && type(inst.b) == DType::kInt64 &&
               type(inst.c) == DType::kInt64;
        break;
      case Opcode::kConst:
      case Opcode::kCast: break;
      default:
        good = (compares ? inst.dtype == DType::kBool : inst.dtype == type(inst.a)) &&
               (count < 2 || type(inst.a) == type(inst.b));
    }
    UNDERTOW_CHECK(good, Error, "v{}: the types of {} do not fit", id, name_of(inst.op));
  }

  static int operand_count(Opcode op) {
    if (op <= Opcode::kIndex) return 0;
    if (op == Opcode::kCast || op == Opcode::kNot) return 1;
    if (op >= Opcode::kNeg && op <= Opcode::kErf) return 1;
    return op >= Opcode::kSelect ? 3 : 2;
  }

  void check_result(const Stage& s, const StageResult& result, std::int32_t id) {
    UNDERTOW_CHECK(id >= 0 && id < static_cast<std::int32_t>(s.expr.insts.size()), Error, "result v{} of {}", id,
                   s.expr.insts.size());
    const DType dtype = s.expr.insts[static_cast<std::size_t>(id)].dtype;
    if (const auto* store = std::get_if<StoreResult>(&result)) {
      check_access(store->access, out_, store->dtype, s.inner, "store");
      UNDERTOW_CHECK(dtype == compute_type(store->dtype), Error, "v{} is {}, stored as {}", id,
                     undertow::name_of(dtype), undertow::name_of(store->dtype));
      stored_[static_cast<std::size_t>(store->access.buffer)] = true;
      return;
    }
    const auto* reduce = std::get_if<ReduceResult>(&result);
    UNDERTOW_CHECK((reduce != nullptr) == s.inner, Error, "{}",
                   reduce ? "only an inner stage reduces" : "only an outer stage sets a local");
    const int i = reduce ? reduce->local : std::get<LocalResult>(result).local;
    Local& l = local(i);
    UNDERTOW_CHECK(!l.set, Error, "local {} is set twice", i);
    l = {true, dtype};
  }

  const LoopNest& n_;
  std::vector<TensorType> in_, out_;
  std::vector<Local> locals_;
  std::vector<bool> stored_;
};

class Verifier {
 public:
  explicit Verifier(const Graph& graph, bool region = false)
      : g_(graph), region_(region), defined_(graph.values.size()) {}

  void run() {
    UNDERTOW_CHECK(!region_ || g_.states.empty(), Error, "a region has no states of its own, this has {}",
                   g_.states.size());
    for (const auto& i : g_.inputs) check_input(i);
    check_states();
    Phase phase = Phase::kCompute;
    for (NodeId n = 0; n < g_.nodes.size(); ++n) {
      try {
        check_node(n, phase);
      } catch (const Error& e) {
        throw Error(fmt::format("the graph breaks a rule at node {} ({}){}: {}", n,
                                g_.nodes[n].op ? g_.nodes[n].op->name : "?", where(g_.nodes[n]), e.what()));
      }
    }
    for (const auto& s : g_.states) check_state_result(s);
    for (const ValueId v : g_.outputs) check_use(v, "the graph's output");
  }

 private:
  std::string where(const Node& n) const {
    if (n.scope >= g_.scopes.size()) return "";
    const Scope& s = g_.scopes[n.scope];
    return (s.cell.empty() ? "" : ", cell " + s.cell) + (s.line.empty() ? "" : ", at " + s.line);
  }

  void define(ValueId v, NodeId producer, const std::string& what) {
    UNDERTOW_CHECK(v < g_.values.size(), Error, "{} is value %{}, the graph has {}", what, v, g_.values.size());
    UNDERTOW_CHECK(!defined_[v], Error, "{}: value %{} is defined twice", what, v);
    UNDERTOW_CHECK(g_.values[v].producer == producer, Error, "{}: value %{} names another producer", what, v);
    defined_[v] = true;
  }
  void check_use(ValueId v, const std::string& what) const {
    UNDERTOW_CHECK(v < g_.values.size(), Error, "{} is value %{}, the graph has {}", what, v, g_.values.size());
    UNDERTOW_CHECK(defined_[v], Error, "{}: value %{} is used before it is defined", what, v);
  }

  void check_input(const Input& i) {
    const std::string what = fmt::format("input '{}'", i.name);
    define(i.value, kNoId, what);
    UNDERTOW_CHECK(i.kind <= Input::kArgument, Error, "{} has no valid kind", what);
    UNDERTOW_CHECK((i.kind == Input::kArgument) == region_, Error, "{}: {}", what,
                   region_ ? "a region's inputs are arguments" : "only a region has arguments");
    if (i.kind == Input::kStep)
      UNDERTOW_CHECK(g_.type(i.value) == (TensorType{DType::kInt64, Shape{}}), Error,
                     "{} counts steps and must be an Int64 scalar, not {}", what, text(g_.type(i.value)));
  }

  void check_states() {
    for (std::size_t n = 0; n < g_.states.size(); ++n) {
      const State& s = g_.states[n];
      const std::string what = fmt::format("state '{}'", s.name);
      define(s.value, kNoId, what);
      for (std::size_t m = 0; m < n; ++m)
        UNDERTOW_CHECK(!s.parameter.defined() || g_.states[m].parameter.impl() != s.parameter.impl(), Error,
                       "{} and '{}' are one parameter", what, g_.states[m].name);
      if (s.parameter.defined())
        UNDERTOW_CHECK(g_.type(s.value) == (TensorType{s.parameter.dtype(), s.parameter.shape()}), Error,
                       "{} is {} in the graph, its parameter {}{}", what, text(g_.type(s.value)),
                       undertow::name_of(s.parameter.dtype()), s.parameter.shape().str());
    }
  }

  void check_state_result(const State& s) const {
    if (s.result == kNoId) return;
    const std::string what = fmt::format("the result of state '{}'", s.name);
    check_use(s.result, what);
    UNDERTOW_CHECK(g_.type(s.result) == g_.type(s.value), Error, "{} is {}, the state {}", what,
                   text(g_.type(s.result)), text(g_.type(s.value)));
  }

  void check_node(NodeId id, Phase& phase) {
    const Node& n = g_.nodes[id];
    UNDERTOW_CHECK(n.op, Error, "it has no operator");
    UNDERTOW_CHECK(n.scope < g_.scopes.size(), Error, "scope {} of {}", n.scope, g_.scopes.size());
    UNDERTOW_CHECK(n.op->num_inputs < 0 || static_cast<int>(n.inputs.size()) == n.op->num_inputs, Error,
                   "it takes {} inputs, got {}", n.op->num_inputs, n.inputs.size());
    UNDERTOW_CHECK(n.phase >= phase, Error, "a {} node stands after {} node",
                   n.phase == Phase::kCompute ? "compute" : "commit",
                   phase == Phase::kCommit ? "a commit" : "an always");
    UNDERTOW_CHECK(!n.op->effect || n.phase == Phase::kCompute, Error,
                   "an op that can fail must run before the guard, not in the commit");
    UNDERTOW_CHECK(!region_ || n.phase == Phase::kCompute, Error, "a commit node stands in a region");
    UNDERTOW_CHECK(static_cast<int>(n.regions.size()) == n.op->num_regions, Error, "it has {} regions, not {}",
                   n.regions.size(), n.op->num_regions);
    for (std::size_t r = 0; r < n.regions.size(); ++r) {
      UNDERTOW_CHECK(n.regions[r], Error, "region {} is missing", r);
      try {
        Verifier(*n.regions[r], true).run();
      } catch (const Error& e) {
        throw Error(fmt::format("in region {}: {}", r, e.what()));
      }
    }
    phase = n.phase;
    std::vector<TensorType> in, out;
    for (const ValueId v : n.inputs) {
      check_use(v, "an input");
      in.push_back(g_.type(v));
    }
    for (const ValueId v : n.outputs) {
      define(v, id, "an output");
      out.push_back(g_.type(v));
    }
    if (n.nest) return NestVerifier(*n.nest, std::move(in), std::move(out)).run();
    const std::vector<TensorType> expected =
        n.op->infer_regions ? n.op->infer_regions(in, n.attrs, n.regions) : n.op->infer(in, n.attrs);
    UNDERTOW_CHECK(expected.size() == out.size(), Error, "it has {} outputs, the operator gives {}", out.size(),
                   expected.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      UNDERTOW_CHECK(expected[i] == out[i], Error, "output %{} is {}, the operator gives {}", n.outputs[i],
                     text(out[i]), text(expected[i]));
  }

  const Graph& g_;
  bool region_;
  std::vector<bool> defined_;
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace undertow::ir
