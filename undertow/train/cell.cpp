// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/cell.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "undertow/base/check.h"
#include "undertow/runtime/trace.h"

namespace undertow::nn {
namespace {

const char* kind_of(const Value& v) {
  static constexpr const char* kKinds[] = {"None",    "a Tensor", "a bool", "an int",
                                           "a float", "a str",    "a list", "a dict"};
  return v.is_tuple() ? "a tuple" : kKinds[v.variant().index()];
}

void collect(const Value& v, std::vector<Tensor>& out) {
  if (v.is_tensor()) out.push_back(v.tensor());
  else if (v.is_list())
    for (const Value& item : v.list()) collect(item, out);
  else if (v.is_dict())
    for (const auto& [_, item] : v.dict()) collect(item, out);
}

/// Process-wide, so that the largest version in a tree of cells changes whenever anything in the tree does.
std::atomic<std::uint64_t> newest_version{0};
std::uint64_t next_version() { return ++newest_version; }

}  // namespace

Value::Value() : v_(None{}) {}
Value::~Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;

const Tensor& Value::tensor() const {
  UNDERTOW_CHECK(is_tensor(), TypeError, "expected a Tensor but got {}", kind_of(*this));
  return std::get<Tensor>(v_);
}

const Value::List& Value::list() const {
  UNDERTOW_CHECK(is_list(), TypeError, "expected a tuple or a list but got {}", kind_of(*this));
  return std::get<List>(v_);
}

std::vector<Tensor> Value::tensors() const {
  std::vector<Tensor> out;
  collect(*this, out);
  return out;
}

Value cast_floats(const Value& value, DType dtype) {
  if (value.is_tensor()) {
    const Tensor& t = value.tensor();
    return ops::is_amp_type(t.dtype()) && t.dtype() != dtype ? Value(ops::cast(t, dtype)) : value;
  }
  if (value.is_list()) {
    Value::List items;
    for (const Value& item : value.list()) items.push_back(cast_floats(item, dtype));
    return Value(std::move(items), value.is_tuple());
  }
  if (!value.is_dict()) return value;
  Value::Dict items;
  for (const auto& [key, item] : value.dict()) items.emplace_back(key, cast_floats(item, dtype));
  return Value(std::move(items));
}

Value Cell::call(const std::vector<Value>& args) {
  const runtime::ScopeName scope(attribute_name_.empty() ? cls_name() : attribute_name_);
  if (precision_) return call_precise(args);
  return call_plain(args);
}

Value Cell::call_plain(const std::vector<Value>& args) {
  if (!hooks_) return construct_values(args);
  return call_hooked(args, [this](const std::vector<Value>& a) { return construct_values(a); });
}

Value Cell::call_precise(std::vector<Value> args) {
  const std::shared_ptr<const CellPrecision> p = precision_;
  if (p->ops.mode == ops::Precision::kRegion)
    for (Value& a : args) a = cast_floats(a, p->ops.dtype);
  Value result;
  {
    const ops::PrecisionScope scope(p->ops);
    result = call_plain(args);
  }
  return p->output ? cast_floats(result, *p->output) : result;
}

void Cell::set_precision(std::shared_ptr<const CellPrecision> precision) {
  precision_ = std::move(precision);
  version_ = next_version();
}

void Cell::to_float(DType dtype) {
  UNDERTOW_CHECK(ops::is_amp_type(dtype), ValueError, "{}.to_float takes float16, bfloat16 or float32, got {}",
                 cls_name(), name_of(dtype));
  CellPrecision p{.ops = {.mode = ops::Precision::kRegion, .dtype = dtype}, .why = "to_float", .chosen = true};
  const auto shared = std::make_shared<const CellPrecision>(std::move(p));
  for (const auto& [_, cell] : cells_and_names()) cell->set_precision(shared);
}

struct Cell::Hooks {
  int next = 0;
  std::map<int, PreHook> before;
  std::map<int, ForwardHook> after;
};

Cell::Cell() = default;
Cell::~Cell() = default;

int Cell::register_forward_pre_hook(PreHook hook) {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  version_ = next_version();
  hooks_->before.emplace(hooks_->next, std::move(hook));
  return hooks_->next++;
}

int Cell::register_forward_hook(ForwardHook hook) {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  version_ = next_version();
  hooks_->after.emplace(hooks_->next, std::move(hook));
  return hooks_->next++;
}

void Cell::remove_hook(int number) {
  if (!hooks_) return;
  if (hooks_->before.erase(number) + hooks_->after.erase(number) > 0) version_ = next_version();
  if (hooks_->before.empty() && hooks_->after.empty()) hooks_.reset();
}

Value Cell::call_hooked(std::vector<Value> args, const std::function<Value(const std::vector<Value>&)>& construct) {
  // Copies: a hook may remove itself.
  const Hooks hooks = hooks_ ? *hooks_ : Hooks{};
  for (const auto& [_, hook] : hooks.before) {
    const Value given = hook(*this, args);
    if (given.is_none()) continue;
    if (given.is_tuple()) args = given.list();
    else args = {given};
  }
  Value result = construct(args);
  for (const auto& [_, hook] : hooks.after) {
    Value given = hook(*this, args, result);
    if (!given.is_none()) result = std::move(given);
  }
  return result;
}

Tensor Cell::operator()(const Tensor& x) { return call({x}).tensor(); }
Tensor Cell::operator()(const Tensor& x, const Tensor& y) { return call({x, y}).tensor(); }

Value Cell::construct_values(const std::vector<Value>& args) {
  if (args.size() == 1) return construct(args[0].tensor());
  if (args.size() == 2) return construct(args[0].tensor(), args[1].tensor());
  throw TypeError(
      fmt::format("{} takes one or two tensors but got {} inputs; a cell with other inputs overrides "
                  "construct_values",
                  where(), args.size()));
}

Tensor Cell::construct(const Tensor&) {
  throw TypeError(fmt::format("{} got one input, but it has no construct for one tensor", where()));
}

Tensor Cell::construct(const Tensor&, const Tensor&) {
  throw TypeError(fmt::format("{} got two inputs, but it has no construct for two tensors", where()));
}

void Cell::insert_param(const std::string& name, const Parameter& parameter) {
  UNDERTOW_CHECK(parameter.defined() && parameter.is_parameter(), TypeError, "{}: '{}' is not a Parameter", cls_name(),
                 name);
  UNDERTOW_CHECK(!name.empty(), ValueError, "{}: a parameter needs an attribute name", cls_name());
  const auto at = std::find_if(params_.begin(), params_.end(), [&](const auto& p) { return p.first == name; });
  if (at != params_.end()) {
    at->second = parameter;
  } else {
    remove(name);
    params_.emplace_back(name, parameter);
  }
  if (!prefix_.empty() || parameter.name().empty() || parameter.name().starts_with(kGeneratedName))
    parameter.set_name(prefix_ + name);
  version_ = next_version();
}

void Cell::insert_child(const std::string& name, Ref<Cell> cell) {
  UNDERTOW_CHECK(cell, TypeError, "{}: '{}' is not a Cell", cls_name(), name);
  UNDERTOW_CHECK(!name.empty(), ValueError, "{}: a child cell needs an attribute name", cls_name());
  const auto at = std::find_if(children_.begin(), children_.end(), [&](const auto& c) { return c.first == name; });
  if (auto_prefix_) {
    cell->attribute_name_ = name;
    std::set<const Cell*> seen{this};
    cell->name_parameters(prefix_ + name + ".", seen);
  }
  if (at != children_.end()) {
    at->second = std::move(cell);
  } else {
    remove(name);
    children_.emplace_back(name, std::move(cell));
  }
  version_ = next_version();
}

bool Cell::remove(const std::string& name) {
  const auto same = [&](const auto& entry) { return entry.first == name; };
  if (std::erase_if(params_, same) + std::erase_if(children_, same) == 0) return false;
  version_ = next_version();
  return true;
}

void Cell::name_parameters(const std::string& prefix, std::set<const Cell*>& seen) {
  if (!seen.insert(this).second) return;
  prefix_ = prefix;
  std::set<const TensorImpl*> named;  // one may stand under several names: the first counts
  for (const auto& [name, p] : params_)
    if (named.insert(p.impl().get()).second && names(p)) p.set_name(prefix + name);
  for (const auto& [name, c] : children_) c->name_parameters(prefix + name + ".", seen);
}

Parameter Cell::get_param(const std::string& name) const {
  for (const auto& [n, p] : params_)
    if (n == name) return p;
  return {};
}

Ref<Cell> Cell::get_child(const std::string& name) const {
  for (const auto& [n, c] : children_)
    if (n == name) return c;
  return {};
}

/// Depth first, this cell first, each cell once. `f(path, cell)`; the path of this cell is `prefix` without its dot.
template <typename F>
void Cell::visit(const std::string& prefix, std::set<const Cell*>& seen, F&& f) const {
  if (!seen.insert(this).second) return;
  f(prefix, *this);
  for (const auto& [name, c] : children_) c->visit(prefix + name + ".", seen, f);
}

std::vector<std::pair<std::string, Parameter>> Cell::parameters_and_names(bool expand) const {
  std::vector<std::pair<std::string, Parameter>> out;
  std::set<const TensorImpl*> known;
  std::set<const Cell*> seen;
  const auto add = [&](const std::string& prefix, const Cell& c) {
    for (const auto& [name, p] : c.params_)
      if (known.insert(p.impl().get()).second) out.emplace_back(prefix + name, p);
  };
  if (expand) visit("", seen, add);
  else add("", *this);
  return out;
}

std::vector<Parameter> Cell::get_parameters(bool expand) const {
  std::vector<Parameter> out;
  for (auto& [_, p] : parameters_and_names(expand)) out.push_back(p);
  return out;
}

std::vector<Parameter> Cell::trainable_params() const {
  std::vector<Parameter> out = get_parameters();
  std::erase_if(out, [](const Parameter& p) { return !p.requires_grad(); });
  return out;
}

std::vector<Parameter> Cell::untrainable_params() const {
  std::vector<Parameter> out = get_parameters();
  std::erase_if(out, [](const Parameter& p) { return p.requires_grad(); });
  return out;
}

std::vector<std::pair<std::string, Ref<Cell>>> Cell::cells_and_names() {
  std::vector<std::pair<std::string, Ref<Cell>>> out;
  std::set<const Cell*> seen;
  visit("", seen, [&](std::string path, const Cell& c) {
    if (!path.empty()) path.pop_back();
    out.emplace_back(std::move(path), Ref<Cell>(const_cast<Cell*>(&c)));
  });
  return out;
}

void Cell::set_train(bool mode) {
  std::set<const Cell*> seen;
  visit("", seen, [mode](const std::string&, const Cell& c) {
    Cell& cell = const_cast<Cell&>(c);
    if (cell.training_ == mode) return;
    cell.training_ = mode;
    cell.version_ = next_version();
  });
}

void Cell::set_requires_grad(bool value) {
  for (const Parameter& p : get_parameters()) p.set_requires_grad(value);
  version_ = next_version();
}

std::uint64_t Cell::version() const {
  std::uint64_t newest = 0;
  std::set<const Cell*> seen;
  visit("", seen, [&](const std::string&, const Cell& c) { newest = std::max(newest, c.version_); });
  return newest;
}

std::uint64_t Cell::changes() { return newest_version; }

std::string Cell::where() const {
  const std::string path = runtime::current_cell_path();
  return path.empty() ? cls_name() : fmt::format("{} '{}'", cls_name(), path);
}

}  // namespace undertow::nn
