// SPDX-License-Identifier: Apache-2.0
// train/function_cell.h: cells without parameters, made of a struct: its members are the options with their defaults,
// its call operator is what the cell computes.
//
//   struct GELUFn {
//     static constexpr const char* kName = "GELU";
//     bool approximate = true;
//     Tensor operator()(const Tensor& x) const;
//   };
//   using GELUCell = FunctionCell<GELUFn>;
//   using GELU = FunctionHandle<GELUFn>;   // nn::GELU({.approximate = false})(x)
//
// Optional: `void check() const` is called by the constructor and throws ValueError; `bool` as the first parameter of
// the call operator gets whether the cell trains; `kInputs`, a list of names, lets Python pass inputs by keyword.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "undertow/train/cell.h"

namespace undertow::nn {

namespace detail {

/// Throws TypeError: `where` takes from `least` to `most` inputs but got `count`.
[[noreturn]] void wrong_count(const Cell& cell, std::size_t least, std::size_t most, std::size_t count);

/// Throws it again with the path of the cell at work, if the message does not have it yet.
void rethrow_with_path(const Error& error);

/// The bool, integer, number or text in a value. Throws TypeError when it is something else.
template <typename T>
T scalar(const Value& v);

/// One input as the type that a call operator takes. Trailing std::optional ones may be None or missing.
template <typename T>
struct Input {
  static constexpr bool kOptional = false;
  static T get(const Value& v) {
    if constexpr (std::is_same_v<T, Value>) return v;
    else if constexpr (std::is_same_v<T, Tensor>) return v.tensor();
    else return scalar<T>(v);
  }
};
template <typename T>
struct Input<std::optional<T>> {
  static constexpr bool kOptional = true;
  static std::optional<T> get(const Value& v) {
    if (v.is_none()) return std::nullopt;
    return Input<T>::get(v);
  }
};

inline Value to_result(Tensor t) { return Value(std::move(t)); }
inline Value to_result(Value v) { return v; }
inline Value to_result(const std::pair<Tensor, Tensor>& p) {
  return Value(Value::List{Value(p.first), Value(p.second)});
}

template <typename F, typename R, typename... Args>
struct Caller {
  static constexpr bool kTraining = std::is_same_v<std::tuple_element_t<0, std::tuple<Args..., void>>, bool>;

  template <typename First, typename... Rest>
  static Value with_training(const F& f, const Cell& cell, const std::vector<Value>& values) {
    return run<Rest...>(f, cell, values, std::index_sequence_for<Rest...>{}, cell.training());
  }
  static Value call(const F& f, const Cell& cell, const std::vector<Value>& values) {
    if constexpr (kTraining) return with_training<Args...>(f, cell, values);
    else return run<Args...>(f, cell, values, std::index_sequence_for<Args...>{});
  }

 private:
  template <typename... Inputs, std::size_t... I, typename... Front>
  static Value run(const F& f, const Cell& cell, const std::vector<Value>& values, std::index_sequence<I...>,
                   Front... front) {
    constexpr std::size_t least = (std::size_t{!Input<std::decay_t<Inputs>>::kOptional} + ... + 0);
    if (values.size() < least || values.size() > sizeof...(Inputs))
      wrong_count(cell, least, sizeof...(Inputs), values.size());
    static const Value none;
    [[maybe_unused]] const auto at = [&](std::size_t i) -> const Value& {
      return i < values.size() ? values[i] : none;
    };
    return to_result(f(front..., Input<std::decay_t<Inputs>>::get(at(I))...));
  }
};

template <typename F, typename R, typename... Args>
Caller<F, R, std::decay_t<Args>...> caller_of(R (F::*)(Args...) const);

}  // namespace detail

/// Base: Cell, or LossBase, which takes over an option `reduction`.
template <typename F, typename Base = Cell>
class FunctionCell : public Base {
 public:
  using Options = F;
  explicit FunctionCell(F f = {}) : f_(std::move(f)) {
    if constexpr (requires { this->set_reduction(f_.reduction); } && !requires { F::kOwnReduction; })
      this->set_reduction(f_.reduction);
    if constexpr (requires { f_.check(); }) f_.check();
  }
  Value construct_values(const std::vector<Value>& args) override {
    try {
      return decltype(detail::caller_of(&F::operator()))::call(f_, *this, args);
    } catch (const Error& e) {
      detail::rethrow_with_path(e);
      throw;
    }
  }
  std::string cls_name() const override { return F::kName; }
  std::vector<std::string> input_names() const override {
    if constexpr (requires { F::kInputs; }) return {std::begin(F::kInputs), std::end(F::kInputs)};
    else return {};
  }
  const F& options() const { return f_; }

 private:
  F f_;
};

template <typename F, typename Base = Cell>
class FunctionHandle : public Handle<FunctionCell<F, Base>> {
 public:
  explicit FunctionHandle(F options = {})
      : Handle<FunctionCell<F, Base>>(make_ref<FunctionCell<F, Base>>(std::move(options))) {}
  using Handle<FunctionCell<F, Base>>::operator();
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c) const {
    return this->ref()->call({a, b, c}).tensor();
  }
};

}  // namespace undertow::nn
