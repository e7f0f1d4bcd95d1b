// SPDX-License-Identifier: Apache-2.0
// Reads what print.cpp writes. The first fault ends it: a FormatError with line, column and what was expected.
#include <cctype>
#include <charconv>
#include <limits>

#include "undertow/base/check.h"
#include "undertow/ir/names.h"
#include "undertow/ir/op_set.h"

namespace undertow::ir {
namespace {

// Dead values leave gaps in the numbering; beyond this a number is a slip, not a gap.
constexpr std::int64_t kMaxValues = 1 << 20;
constexpr int kMaxDepth = 64;  // of regions: text may not exhaust the stack

struct Token {
  enum Kind { kWord, kInteger, kReal, kText, kPunct, kComment, kNewline, kEnd } kind = kEnd;
  std::string_view spelling;
  std::string text;  // kText without its escapes; kComment without '#'
  int line = 1, column = 1;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) { advance(); }

  const Token& peek() const { return token_; }
  Token take() {
    Token t = std::move(token_);
    advance();
    return t;
  }
  [[noreturn]] static void fail(const Token& at, const std::string& message) {
    throw FormatError(fmt::format("line {}, column {}: {}", at.line, at.column, message));
  }
  static std::string describe(const Token& t) {
    if (t.kind == Token::kEnd) return "the end of the text";
    if (t.kind == Token::kNewline) return "the end of the line";
    return fmt::format("'{}'", t.spelling);
  }

 private:
  static bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  static bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

  void advance() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r')) eat(1);
    token_ = {};
    token_.line = line_;
    token_.column = column_;
    if (rest_.empty()) return;
    const char c = rest_[0];
    std::size_t n = 1;
    if (c == '\n') token_.kind = Token::kNewline;
    else if (c == '#') {
      token_.kind = Token::kComment;
      n = std::min(rest_.find('\n'), rest_.size());
      token_.text = rest_.substr(1, n - 1);
    } else if (c == '"') n = lex_text();
    else if (digit(c) || (c == '-' && rest_.size() > 1 && (digit(rest_[1]) || rest_[1] == 'i' || rest_[1] == 'n')))
      n = lex_number();
    else if (in_word(c)) {
      token_.kind = Token::kWord;
      while (n < rest_.size() && (in_word(rest_[n]) || rest_[n] == '.')) ++n;
    } else {
      token_.kind = Token::kPunct;
      if (rest_.starts_with("->")) n = 2;
    }
    token_.spelling = rest_.substr(0, n);
    if (token_.spelling == "inf" || token_.spelling == "nan") token_.kind = Token::kReal;
    eat(n);
  }

  std::size_t lex_number() {
    std::size_t n = 1;
    token_.kind = Token::kInteger;
    for (; n < rest_.size(); ++n) {
      const char c = rest_[n];
      const bool exponent_sign = (c == '+' || c == '-') && rest_[n - 1] == 'e';
      if (!in_word(c) && c != '.' && !exponent_sign) break;
      if (!digit(c)) token_.kind = Token::kReal;
    }
    return n;
  }

  std::size_t lex_text() {
    token_.kind = Token::kText;
    for (std::size_t n = 1; n < rest_.size() && rest_[n] != '\n'; ++n) {
      if (rest_[n] == '"') return n + 1;
      if (rest_[n] == '\\' && n + 1 < rest_.size()) {
        ++n;
        token_.text += rest_[n] == 'n' ? '\n' : rest_[n];
      } else token_.text += rest_[n];
    }
    fail(token_, "this text has no closing quote");
  }

  void eat(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      if (rest_[i] == '\n') ++line_, column_ = 1;
      else ++column_;
    }
    rest_.remove_prefix(n);
  }

  std::string_view rest_;
  Token token_;
  int line_ = 1, column_ = 1;
};

class Parser {
 public:
  /// `depth`: how many regions this graph is in.
  explicit Parser(Lexer& lexer, int depth = 0) : lex_(lexer), depth_(depth) {}

  Graph run() {
    bool returned = false;
    while (true) {
      skip_blank_lines();
      if (lex_.peek().kind == Token::kEnd || (depth_ > 0 && is_punct("}"))) break;
      if (returned) Lexer::fail(lex_.peek(), "nothing may follow the return line");
      if (is_word("return")) {
        returned = true;
        parse_return();
      } else parse_definition();
    }
    if (!returned) Lexer::fail(lex_.peek(), "the graph has no return line");
    for (const auto& [at, v] : results_)
      if (!defined(v)) Lexer::fail(at, fmt::format("%{} is never defined", v));
    return std::move(g_);
  }

 private:
  // ---- tokens
  bool is_word(std::string_view w) const { return lex_.peek().kind == Token::kWord && lex_.peek().spelling == w; }
  bool is_punct(std::string_view p) const { return lex_.peek().kind == Token::kPunct && lex_.peek().spelling == p; }
  bool accept(std::string_view p) {
    if (!is_punct(p) && !is_word(p)) return false;
    lex_.take();
    return true;
  }
  void expect(std::string_view p) {
    if (!accept(p)) Lexer::fail(lex_.peek(), fmt::format("expected '{}', found {}", p, Lexer::describe(lex_.peek())));
  }
  Token expect_kind(Token::Kind kind, const char* what) {
    if (lex_.peek().kind != kind)
      Lexer::fail(lex_.peek(), fmt::format("expected {}, found {}", what, Lexer::describe(lex_.peek())));
    return lex_.take();
  }
  std::string comment() { return lex_.peek().kind == Token::kComment ? lex_.take().text : std::string(); }
  void end_line() {
    comment();
    if (lex_.peek().kind != Token::kEnd) expect_kind(Token::kNewline, "the end of the line");
  }
  void skip_blank_lines() {
    while (lex_.peek().kind == Token::kNewline || lex_.peek().kind == Token::kComment) lex_.take();
  }

  // ---- literals
  template <typename T>
  static T number(const Token& t, std::string_view digits) {
    T v{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    if (error != std::errc{} || end != digits.data() + digits.size())
      Lexer::fail(t, fmt::format("'{}' is not a number that fits", t.spelling));
    return v;
  }
  /// What `f` throws becomes a FormatError at the token.
  template <typename F>
  static auto at_token(const Token& t, F f) {
    try {
      return f();
    } catch (const Error& e) {
      Lexer::fail(t, e.what());
    }
  }
  std::int64_t integer() {
    const Token t = expect_kind(Token::kInteger, "an integer");
    return number<std::int64_t>(t, t.spelling);
  }
  int small(const char* what) {
    const Token t = expect_kind(Token::kInteger, what);
    return number<int>(t, t.spelling);
  }
  double real() {
    const Token t = expect_kind(Token::kReal, "a number");
    return number<double>(t, t.spelling);
  }
  std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> list;
    expect("[");
    if (accept("]")) return list;
    do list.push_back(integer());
    while (accept(","));
    expect("]");
    return list;
  }
  DType dtype() {
    const Token t = expect_kind(Token::kWord, "a dtype");
    return at_token(t, [&] { return dtype_from_name(t.spelling); });
  }

  // ---- values
  bool defined(ValueId v) const { return v < defined_.size() && defined_[v]; }
  ValueId value_id() {
    expect("%");
    const Token t = expect_kind(Token::kInteger, "a value's number");
    const auto v = number<std::int64_t>(t, t.spelling);
    if (v < 0 || v >= kMaxValues) Lexer::fail(t, fmt::format("value numbers go from 0 to {}", kMaxValues - 1));
    return static_cast<ValueId>(v);
  }
  ValueId use() {
    const Token at = lex_.peek();
    const ValueId v = value_id();
    if (!defined(v)) Lexer::fail(at, fmt::format("%{} is used before it is defined", v));
    return v;
  }
  ValueId define(NodeId producer) {
    const Token at = lex_.peek();
    const ValueId v = value_id();
    if (defined(v)) Lexer::fail(at, fmt::format("%{} is defined twice", v));
    expect(":");
    TensorType type;
    type.dtype = dtype();
    const Token bracket = lex_.peek();
    const auto dims = integers();
    double elements = 1;
    for (const auto d : dims) elements *= static_cast<double>(d);
    if (elements > 0x1p60) Lexer::fail(bracket, "no tensor has that many elements");
    type.shape = at_token(bracket, [&] { return Shape(dims); });
    if (v >= g_.values.size()) g_.values.resize(v + 1);
    if (v >= defined_.size()) defined_.resize(v + 1);
    g_.values[v] = {std::move(type), producer};
    pending_.push_back(v);
    return v;
  }
  /// Values of one line become known once the line is read: a node cannot use its own outputs.
  void publish() {
    for (const ValueId v : pending_) defined_[v] = true;
    pending_.clear();
  }

  // ---- lines
  void parse_return() {
    expect("return");
    if (is_punct("%")) {
      do g_.outputs.push_back(use());
      while (accept(","));
    }
    end_line();
  }

  void parse_definition() {
    Node node;
    if (accept("commit")) node.phase = Phase::kCommit;
    else if (accept("always")) node.phase = Phase::kAlways;
    const Token first = lex_.peek();
    if (is_punct("%")) {
      do node.outputs.push_back(define(static_cast<NodeId>(g_.nodes.size())));
      while (accept(","));
      check_distinct(first, node.outputs);
      expect("=");
    }
    const Token op = expect_kind(Token::kWord, "an operator");
    if (is_punct("(")) return parse_node(op, std::move(node));
    const bool leaf = node.outputs.size() == 1 && node.phase == Phase::kCompute && g_.nodes.empty();
    if (leaf && op.spelling == "input") return parse_input(node.outputs[0]);
    if (leaf && op.spelling == "state") return parse_state(node.outputs[0]);
    if (op.spelling == "input" || op.spelling == "state")
      Lexer::fail(op, "inputs and states define one value each and stand before the first node");
    expect("(");
  }

  static void check_distinct(const Token& at, const std::vector<ValueId>& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (outputs[i] == outputs[j]) Lexer::fail(at, fmt::format("%{} is defined twice", outputs[i]));
  }

  void parse_input(ValueId v) {
    g_.values[v].producer = kNoId;
    const Token kind = expect_kind(Token::kWord, "batch, capture, step or argument");
    const auto k = find_name(kInputKindNames, kind.spelling);
    if (!k) Lexer::fail(kind, fmt::format("expected batch, capture, step or argument, found '{}'", kind.spelling));
    Input input{.value = v, .kind = static_cast<Input::Kind>(*k)};
    input.name = expect_kind(Token::kText, "the input's name in quotes").text;
    g_.inputs.push_back(std::move(input));
    publish();
    end_line();
  }

  void parse_state(ValueId v) {
    g_.values[v].producer = kNoId;
    State state{.value = v};
    state.name = expect_kind(Token::kText, "the state's name in quotes").text;
    if (accept("->")) {
      const Token at = lex_.peek();
      state.result = value_id();
      results_.emplace_back(at, state.result);
    }
    state.always = accept("always");
    g_.states.push_back(std::move(state));
    publish();
    end_line();
  }

  void parse_node(const Token& op, Node node) {
    node.op = op_set().find(op.spelling);
    if (!node.op) Lexer::fail(op, fmt::format("no operator is named '{}'", op.spelling));
    expect("(");
    if (!accept(")")) {
      do node.inputs.push_back(use());
      while (accept(","));
      expect(")");
    }
    if (is_punct("{")) parse_attrs(node.attrs);
    const bool nest = accept("nest"), regions = !nest && accept("regions");
    if (nest || regions) expect("{");
    node.scope = g_.intern_scope(scope_of(comment()));
    end_line();
    if (nest) node.nest = std::make_shared<const LoopNest>(parse_nest());
    if (regions) parse_regions(node.regions);
    publish();
    g_.nodes.push_back(std::move(node));
  }

  void parse_regions(std::vector<RegionPtr>& regions) {
    if (depth_ == kMaxDepth) Lexer::fail(lex_.peek(), fmt::format("regions nest at most {} deep", kMaxDepth));
    for (skip_blank_lines(); !accept("}"); skip_blank_lines()) {
      expect("region");
      expect("{");
      end_line();
      regions.push_back(std::make_shared<const Graph>(Parser(lex_, depth_ + 1).run()));
      expect("}");
      end_line();
    }
    end_line();
  }

  static Scope scope_of(std::string_view comment) {
    while (comment.starts_with(' ')) comment.remove_prefix(1);
    while (comment.ends_with(' ') || comment.ends_with('\r')) comment.remove_suffix(1);
    const std::size_t space = std::min(comment.find(' '), comment.size());
    Scope scope{std::string(comment.substr(0, space)),
                std::string(comment.substr(std::min(space + 1, comment.size())))};
    if (scope.cell == "-") scope.cell.clear();
    return scope;
  }

  void parse_attrs(Attrs& attrs) {
    expect("{");
    do {
      const Token key = expect_kind(Token::kWord, "an attribute's name");
      if (attrs.find(key.spelling)) Lexer::fail(key, fmt::format("attribute '{}' is given twice", key.spelling));
      expect("=");
      attrs.set(std::string(key.spelling), attr_value());
    } while (accept(","));
    expect("}");
  }

  AttrValue attr_value() {
    switch (lex_.peek().kind) {
      case Token::kInteger: return integer();
      case Token::kReal: return real();
      case Token::kText: return lex_.take().text;
      default: break;
    }
    if (is_punct("[")) return integers();
    if (accept("true")) return true;
    if (accept("false")) return false;
    return dtype();
  }

  // ---- loop nests
  LoopNest parse_nest() {
    LoopNest nest;
    skip_blank_lines();
    expect("loops");
    nest.extents = integers();
    expect("outer");
    nest.num_outer = small("a count");
    expect("locals");
    nest.num_locals = small("a count");
    expect("inputs");
    nest.num_inputs = small("a count");
    expect("outputs");
    nest.num_outputs = small("a count");
    end_line();
    for (skip_blank_lines(); !accept("}"); skip_blank_lines()) nest.stages.push_back(parse_stage());
    end_line();
    return nest;
  }

  Stage parse_stage() {
    Stage s;
    expect("stage");
    s.inner = accept("inner");
    if (!s.inner) expect("outer");
    expect("{");
    end_line();
    for (skip_blank_lines(); !accept("}"); skip_blank_lines()) {
      parse_stage_line(s);
      end_line();
    }
    end_line();
    return s;
  }

  void parse_stage_line(Stage& s) {
    const Token first = expect_kind(Token::kWord, "a line of the stage");
    if (first.spelling == "load") {
      if (!s.locals.empty()) Lexer::fail(first, "loads stand before locals");
      s.loads.push_back(access());
      s.expr.inputs.push_back(typed());
    } else if (first.spelling == "local") {
      s.locals.push_back(small("a local's number"));
      s.expr.inputs.push_back(typed());
    } else if (first.spelling == "store") {
      s.expr.results.push_back(operand());
      Access a = access();
      s.results.push_back(StoreResult{std::move(a), typed()});
    } else if (first.spelling == "reduce") {
      s.expr.results.push_back(operand());
      const Token t = expect_kind(Token::kWord, "sum, prod, max or min");
      const auto op = find_name(kReduceNames, t.spelling);
      if (!op) Lexer::fail(t, fmt::format("expected sum, prod, max or min, found '{}'", t.spelling));
      s.results.push_back(ReduceResult{static_cast<ReduceOp>(*op), small("a local's number")});
    } else if (first.spelling == "set") {
      s.expr.results.push_back(operand());
      s.results.push_back(LocalResult{small("a local's number")});
    } else if (first.spelling == fmt::format("v{}", s.expr.insts.size())) {
      s.expr.insts.push_back(instruction());
    } else {
      Lexer::fail(first, fmt::format("expected load, local, v{}, store, reduce or set, found '{}'", s.expr.insts.size(),
                                     first.spelling));
    }
  }

  DType typed() {
    expect(":");
    return dtype();
  }
  Access access() {
    Access a;
    a.buffer = small("a buffer's number");
    expect("at");
    a.offset = integer();
    a.strides = integers();
    return a;
  }
  std::int32_t operand() {
    const Token t = expect_kind(Token::kWord, "an operand");
    if (t.spelling == "_") return -1;
    if (t.spelling[0] != 'v') Lexer::fail(t, fmt::format("expected an operand like v0, found '{}'", t.spelling));
    return number<std::int32_t>(t, t.spelling.substr(1));
  }
  ExprInst instruction() {
    ExprInst inst{};
    inst.dtype = typed();
    expect("=");
    const Token t = expect_kind(Token::kWord, "an operation");
    const auto op = opcode_from_name(t.spelling);
    if (!op) Lexer::fail(t, fmt::format("no scalar operation is named '{}'", t.spelling));
    inst.op = *op;
    expect("(");
    if (!accept(")")) {
      inst.a = operand();
      if (accept(",")) inst.b = operand();
      if (accept(",")) inst.c = operand();
      expect(")");
    }
    if (lex_.peek().kind == Token::kInteger) inst.imm = integer();
    if (lex_.peek().kind == Token::kReal) inst.fimm = real();
    return inst;
  }

  Lexer& lex_;
  int depth_;
  Graph g_;
  std::vector<bool> defined_;
  std::vector<ValueId> pending_;
  std::vector<std::pair<Token, ValueId>> results_;  // of states, which may come later
};

}  // namespace

Graph parse(std::string_view text) {
  Lexer lexer(text);
  return Parser(lexer).run();
}

}  // namespace undertow::ir
