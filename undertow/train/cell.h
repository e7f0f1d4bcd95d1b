// SPDX-License-Identifier: Apache-2.0
// train/cell.h: nn::Cell, the unit networks are built of. C++ and Python cells are one class.
//
//   struct Net : ut::nn::Cell {
//     ut::nn::Dense fc = child("fc", ut::nn::Dense(8, 1));
//     ut::Tensor construct(const ut::Tensor& x) override { return fc(x); }
//   };
//   auto net = ut::nn::make<Net>();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "undertow/base/ref_counted.h"
#include "undertow/ops/precision.h"
#include "undertow/tensor/tensor.h"

namespace undertow::nn {

/// What `construct` takes and returns: a tree of tensors and plain values.
class Value {
 public:
  using List = std::vector<Value>;
  using Dict = std::vector<std::pair<std::string, Value>>;
  struct None {};

  Value();
  // Out of line: inlined, they make GCC 12 warn in every user's file.
  ~Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  Value(Tensor t) : v_(std::move(t)) {}
  Value(bool b) : v_(b) {}
  Value(std::int64_t i) : v_(i) {}
  Value(int i) : v_(std::int64_t{i}) {}
  Value(double d) : v_(d) {}
  Value(std::string s) : v_(std::move(s)) {}
  Value(List l, bool tuple = true) : v_(std::move(l)), tuple_(tuple) {}
  Value(Dict d) : v_(std::move(d)) {}

  bool is_none() const { return std::holds_alternative<None>(v_); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(v_); }
  bool is_list() const { return std::holds_alternative<List>(v_); }
  bool is_dict() const { return std::holds_alternative<Dict>(v_); }
  bool is_tuple() const { return is_list() && tuple_; }
  /// Throws TypeError when it is something else.
  const Tensor& tensor() const;
  const List& list() const;
  const Dict& dict() const { return std::get<Dict>(v_); }
  const auto& variant() const { return v_; }
  /// All tensors in order.
  std::vector<Tensor> tensors() const;

 private:
  std::variant<None, Tensor, bool, std::int64_t, double, std::string, List, Dict> v_;
  bool tuple_ = true;
};

/// Starts the names of parameters that got none; an attribute's name replaces such a name.
inline constexpr std::string_view kGeneratedName = "Parameter#";

/// In which dtype a cell computes. The levels of train/amp.h and Cell::to_float make these.
struct CellPrecision {
  ops::Precision ops;           ///< for the op calls in `construct`; kRegion: float inputs are cast to its dtype too
  std::optional<DType> output;  ///< float results are cast to it
  std::string why;              ///< "level O2", "to_float", ...: for reports
  bool chosen = false;          ///< by to_float: levels leave the cell as it is
  std::string level;            ///< of the network, and the half type it was set with
  DType half = DType::kFloat32;
};
/// The value with the float32 and half tensors in it cast.
Value cast_floats(const Value& value, DType dtype);

class Cell : public RefCounted {
 public:
  Cell();
  ~Cell() override;

  /// Runs `construct` under this cell's name; errors get the cell's path.
  Value call(const std::vector<Value>& args);
  Tensor operator()(const Tensor& x);
  Tensor operator()(const Tensor& x, const Tensor& y);

  /// What the cell computes. Override one of these; the general form calls the one that fits the arguments.
  virtual Value construct_values(const std::vector<Value>& args);
  virtual Tensor construct(const Tensor& x);
  virtual Tensor construct(const Tensor& x, const Tensor& y);

  /// Names of the inputs, for callers that pass them by keyword; empty where there are none.
  virtual std::vector<std::string> input_names() const { return {}; }

  /// Registers a parameter or a child under an attribute name (replacing an earlier one) and names the parameters by
  /// their attribute path ("fc.weight").
  void insert_param(const std::string& name, const Parameter& parameter);
  void insert_child(const std::string& name, Ref<Cell> cell);
  /// Forgets an attribute; false when it was not registered.
  bool remove(const std::string& name);

  /// The parameter registered under an attribute name; not `defined()` when there is none.
  Parameter get_param(const std::string& name) const;
  /// The child registered under an attribute name, or null.
  Ref<Cell> get_child(const std::string& name) const;
  const std::vector<std::pair<std::string, Parameter>>& own_params() const { return params_; }
  const std::vector<std::pair<std::string, Ref<Cell>>>& children() const { return children_; }
  /// All parameters with their attribute paths, own first, depth first; each once.
  std::vector<std::pair<std::string, Parameter>> parameters_and_names(bool expand = true) const;
  std::vector<Parameter> get_parameters(bool expand = true) const;
  std::vector<Parameter> trainable_params() const;
  std::vector<Parameter> untrainable_params() const;
  /// This cell ("") and all below with their paths.
  std::vector<std::pair<std::string, Ref<Cell>>> cells_and_names();

  bool training() const { return training_; }
  /// Sets training or evaluation for this cell and all below. New cells are in evaluation.
  void set_train(bool mode = true);
  void set_requires_grad(bool value);
  /// This cell and all below compute in float16, bfloat16 or float32: their float inputs are cast, and parameters where
  /// they are used. Throws ValueError for another dtype.
  void to_float(DType dtype);
  const std::shared_ptr<const CellPrecision>& precision() const { return precision_; }
  void set_precision(std::shared_ptr<const CellPrecision> precision);
  /// Changes with every change of a training flag or registration in this cell or below: keys compiled functions.
  std::uint64_t version() const;
  /// Changes with every such change in any cell of the process.
  static std::uint64_t changes();

  /// Class name for messages ("Dense"); Python cells give their own.
  virtual std::string cls_name() const { return "Cell"; }
  /// The name under which a parent registered it ("fc"), or "".
  const std::string& attribute_name() const { return attribute_name_; }
  void set_attribute_name(std::string n) { attribute_name_ = std::move(n); }
  /// Whether children's parameters get this cell's attribute names in front of their own (default), or keep theirs:
  /// wrappers around a network keep them.
  bool auto_prefix() const { return auto_prefix_; }
  void set_auto_prefix(bool value) { auto_prefix_ = value; }
  /// The prefix that the parents gave: "net.fc", or "".
  std::string param_prefix() const { return prefix_.empty() ? prefix_ : prefix_.substr(0, prefix_.size() - 1); }
  /// Makes another cell of the same arguments in given memory (of the class that Python derives from if `derived`); set
  /// for cells that Python made and that can be copied.
  using Maker = std::function<void(void* memory, bool derived)>;
  const Maker& maker() const { return maker_; }
  void set_maker(Maker maker) { maker_ = std::move(maker); }
  /// What a hook may give back in place of the arguments or the result; None leaves them.
  using PreHook = std::function<Value(Cell&, const std::vector<Value>& args)>;
  using ForwardHook = std::function<Value(Cell&, const std::vector<Value>& args, const Value& result)>;
  /// Called before (after) `construct` at each call, in the order of their numbers; the number is for remove_hook.
  int register_forward_pre_hook(PreHook hook);
  int register_forward_hook(ForwardHook hook);
  void remove_hook(int number);
  bool has_hooks() const { return hooks_ != nullptr; }
  /// `construct` with the hooks around it.
  Value call_hooked(std::vector<Value> args, const std::function<Value(const std::vector<Value>&)>& construct);
  /// "Dense 'net.fc'" inside a call, for messages; the class alone outside one.
  std::string where() const;

 protected:
  /// For members: registers and returns the same handle.
  template <typename H>
  H child(const std::string& name, H handle) {
    insert_child(name, handle.ref());
    return handle;
  }
  Parameter param(const std::string& name, const Parameter& p) {
    insert_param(name, p);
    return p;
  }
  /// Whether a registered parameter is this cell's to name; an optimizer's weights are the network's.
  virtual bool names(const Parameter&) const { return true; }

 private:
  Value call_plain(const std::vector<Value>& args);
  Value call_precise(std::vector<Value> args);
  void name_parameters(const std::string& prefix, std::set<const Cell*>& seen);
  template <typename F>
  void visit(const std::string& prefix, std::set<const Cell*>& seen, F&& f) const;

  std::vector<std::pair<std::string, Parameter>> params_;
  std::vector<std::pair<std::string, Ref<Cell>>> children_;
  struct Hooks;
  std::unique_ptr<Hooks> hooks_;
  std::shared_ptr<const CellPrecision> precision_;
  Maker maker_;
  bool training_ = false, auto_prefix_ = true;
  std::uint64_t version_ = 0;
  std::string attribute_name_;
  std::string prefix_;  // attribute path from the outermost parent, with its dot: "net.fc."
};

/// Shared handle to a cell of class T, used like the cell itself: copies are the same cell.
template <typename T>
class Handle {
 public:
  Handle() = default;
  explicit Handle(Ref<T> cell) : cell_(std::move(cell)) {}
  const Ref<T>& ref() const { return cell_; }
  T* operator->() const { return cell_.get(); }
  T& operator*() const { return *cell_; }
  Tensor operator()(const Tensor& x) const { return (*cell_)(x); }
  Tensor operator()(const Tensor& x, const Tensor& y) const { return (*cell_)(x, y); }
  std::vector<Parameter> trainable_params() const { return cell_->trainable_params(); }
  std::vector<Parameter> get_parameters() const { return cell_->get_parameters(); }
  void set_train(bool mode = true) const { cell_->set_train(mode); }
  template <typename U>
    requires std::is_convertible_v<T*, U*>
  operator Ref<U>() const {
    return cell_;
  }

 private:
  Ref<T> cell_;
};

/// A new cell of the user's class.
template <typename T, typename... A>
Handle<T> make(A&&... args) {
  return Handle<T>(make_ref<T>(std::forward<A>(args)...));
}

}  // namespace undertow::nn
