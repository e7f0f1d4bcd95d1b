// SPDX-License-Identifier: Apache-2.0
// The text form, one node a line:
//
//   %0: Float32[32, 784] = input batch "image"
//   %1: Float32[10, 784] = state "fc.weight" -> %9
//   %5: Float32[] = state "scale_sense" -> %11 always
//   %2: Float32[32, 10] = matmul(%0, %1) {transpose_a = false, transpose_b = true}  # net.fc lenet.py:31
//   check_index(%3) {low = 0, high = 10}
//   commit %9: Float32[10, 784] = sub(%1, %8)
//   always %11: Float32[] = copy(%10)
//   return %2
//
// A fused node's loop nest follows its line in braces: the loops, then each stage's loads, locals, scalar instructions
// and results. A node's regions follow it in the same way, one after the other between braces:
//
//   %3: Float32[2] = cond(%1, %2) regions {
//     region {
//       %0: Float32[2] = input argument "x"
//       return %0
//     }
//     ...
//   }
//
// A graph that breaks the verifier's rules prints as well, so that it can be looked at.
#include <bit>

#include "undertow/base/check.h"
#include "undertow/ir/names.h"

namespace undertow::ir {
namespace {

std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') out += "\\n";
    else out += c;
  }
  return out + "\"";
}

std::string one_line(std::string s) {
  std::replace(s.begin(), s.end(), '\n', ' ');
  return s;
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : g_(graph) {}

  std::string run() {
    for (const auto& i : g_.inputs)
      line("{} = input {} {}", value(i.value), i.kind < kInputKindNames.size() ? kInputKindNames[i.kind] : "?",
           quoted(i.name));
    for (const auto& s : g_.states)
      line("{} = state {}{}{}", value(s.value), quoted(s.name),
           s.result == kNoId ? "" : fmt::format(" -> %{}", s.result), s.always ? " always" : "");
    for (const auto& n : g_.nodes) print_node(n);
    line("return {}", join(g_.outputs, [](ValueId v) { return fmt::format("%{}", v); }));
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  template <typename Range, typename F>
  static std::string join(const Range& range, F f) {
    std::string s;
    for (const auto& v : range) s += (s.empty() ? "" : ", ") + f(v);
    return s;
  }
  std::string value(ValueId v) const {
    if (v >= g_.values.size()) return fmt::format("%{}: ?", v);
    const auto& t = g_.type(v);
    return fmt::format("%{}: {}[{}]", v, undertow::name_of(t.dtype), fmt::join(t.shape.to_vector(), ", "));
  }

  void print_node(const Node& n) {
    std::string s = n.phase == Phase::kCommit ? "commit " : n.phase == Phase::kAlways ? "always " : "";
    if (!n.outputs.empty()) s += join(n.outputs, [&](ValueId v) { return value(v); }) + " = ";
    s +=
        fmt::format("{}({})", n.op ? n.op->name : "?", join(n.inputs, [](ValueId v) { return fmt::format("%{}", v); }));
    if (!n.attrs.empty())
      s += fmt::format(" {{{}}}", join(n.attrs, [](const auto& item) {
                         const auto* text = std::get_if<std::string>(&item.second);
                         return fmt::format("{} = {}", item.first, text ? quoted(*text) : to_text(item.second));
                       }));
    if (n.nest) s += " nest {";
    if (!n.regions.empty()) s += " regions {";
    if (n.scope < g_.scopes.size()) {
      const Scope& scope = g_.scopes[n.scope];
      if (!scope.cell.empty() || !scope.line.empty()) {
        s += fmt::format("  # {}", scope.cell.empty() ? "-" : one_line(scope.cell));
        if (!scope.line.empty()) s += " " + one_line(scope.line);
      }
    }
    out_ += s + "\n";
    if (n.nest) print_nest(*n.nest);
    if (n.regions.empty()) return;
    for (const auto& r : n.regions) {
      line("  region {{");
      indent(r ? print(*r) : "?\n");
      line("  }}");
    }
    line("}}");
  }

  /// The lines of a region's text, four columns in.
  void indent(const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at) + 1;
      out_ += "    " + text.substr(at, end - at);
      at = end;
    }
  }

  void print_nest(const LoopNest& nest) {
    line("  loops [{}] outer {} locals {} inputs {} outputs {}", fmt::join(nest.extents, ", "), nest.num_outer,
         nest.num_locals, nest.num_inputs, nest.num_outputs);
    for (const auto& s : nest.stages) {
      line("  stage {} {{", s.inner ? "inner" : "outer");
      print_stage(s);
      line("  }}");
    }
    line("}}");
  }

  void print_stage(const Stage& s) {
    const auto& types = s.expr.inputs;
    std::size_t next = 0;
    const auto type = [&] { return next < types.size() ? undertow::name_of(types[next++]) : "?"; };
    for (const auto& a : s.loads) line("    load {}: {}", access(a), type());
    for (const int l : s.locals) line("    local {}: {}", l, type());
    for (std::size_t i = 0; i < s.expr.insts.size(); ++i) {
      const ExprInst& inst = s.expr.insts[i];
      std::string text =
          fmt::format("    v{}: {} = {}({})", i, undertow::name_of(inst.dtype), name_of(inst.op), operands(inst));
      if (inst.imm != 0) text += fmt::format(" {}", inst.imm);
      if (std::bit_cast<std::uint64_t>(inst.fimm) != 0) text += " " + to_text(AttrValue(inst.fimm));
      out_ += text + "\n";
    }
    for (std::size_t i = 0; i < std::min(s.results.size(), s.expr.results.size()); ++i) {
      const auto v = s.expr.results[i];
      if (const auto* store = std::get_if<StoreResult>(&s.results[i]))
        line("    store v{} {}: {}", v, access(store->access), undertow::name_of(store->dtype));
      else if (const auto* reduce = std::get_if<ReduceResult>(&s.results[i]))
        line("    reduce v{} {} {}", v, kReduceNames[static_cast<std::size_t>(reduce->op)], reduce->local);
      else line("    set v{} {}", v, std::get<LocalResult>(s.results[i]).local);
    }
  }

  static std::string access(const Access& a) {
    return fmt::format("{} at {} [{}]", a.buffer, a.offset, fmt::join(a.strides, ", "));
  }
  static std::string operands(const ExprInst& inst) {
    std::string s;
    const auto one = [](std::int32_t id) { return id < 0 ? std::string("_") : fmt::format("v{}", id); };
    if (inst.a >= 0 || inst.b >= 0 || inst.c >= 0) s = one(inst.a);
    if (inst.b >= 0 || inst.c >= 0) s += ", " + one(inst.b);
    if (inst.c >= 0) s += ", " + one(inst.c);
    return s;
  }

  const Graph& g_;
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).run(); }

}  // namespace undertow::ir
