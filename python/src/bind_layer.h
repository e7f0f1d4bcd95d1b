// SPDX-License-Identifier: Apache-2.0
// python/src/bind_layer.h: a layer's constructor from the members of its options: one line an argument.
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "python/src/layer_args.h"
#include "undertow/train/extents.h"
#include "undertow/train/function_cell.h"

namespace undertow::python {

/// How an option of type T is written in Python: the type taken, the option made of it, and what is shown as default
/// and attribute. `what` ("Conv2d: stride") starts messages.
template <typename T>
struct PyArg {
  using type = T;
  static T get(const T& v, const std::string&) { return v; }
  static nb::object show(const T& v) { return nb::cast(v); }
};

template <std::size_t N, typename E>
struct ExtentsArg {
  using type = Ints;
  static E get(const Ints& v, const std::string& what) {
    constexpr std::size_t count = E::kCount;
    if (v.values.size() == 1) return E(v.values[0]);
    UNDERTOW_CHECK(v.values.size() == count, ValueError, "{} must be one integer{}, got {} of them", what,
                   count == 1 ? std::string() : fmt::format(" or {}", count), v.values.size());
    E e(0);
    std::copy(v.values.begin(), v.values.end(), e.v.begin());
    return e;
  }
  static nb::object show(const E& e) {
    for (const auto v : e.v)
      if (v != e.v[0]) return nb::tuple(nb::cast(e.list()));
    return nb::cast(e.v[0]);
  }
};
template <std::size_t N>
struct PyArg<nn::Extents<N>> : ExtentsArg<N, nn::Extents<N>> {};
template <std::size_t N>
struct PyArg<nn::Paddings<N>> : ExtentsArg<N, nn::Paddings<N>> {};

template <typename T>
struct PyArg<std::optional<T>> {
  using type = std::optional<typename PyArg<T>::type>;
  static std::optional<T> get(const type& v, const std::string& what) {
    return v ? std::optional<T>(PyArg<T>::get(*v, what)) : std::nullopt;
  }
  static nb::object show(const std::optional<T>& v) { return v ? PyArg<T>::show(*v) : nb::none(); }
};

/// One integer, a sequence, or None for an empty list.
template <>
struct PyArg<std::vector<std::int64_t>> {
  using type = std::optional<Ints>;
  static std::vector<std::int64_t> get(const type& v, const std::string&) {
    return v ? v->values : std::vector<std::int64_t>{};
  }
  static nb::object show(const std::vector<std::int64_t>& v) {
    if (v.empty()) return nb::none();
    return v.size() == 1 ? nb::cast(v[0]) : nb::object(nb::tuple(nb::cast(v)));
  }
};

/// One number, a sequence, or None for an empty list.
template <>
struct PyArg<std::vector<double>> {
  using type = nb::object;
  static std::vector<double> get(const nb::object& v, const std::string& what) {
    std::vector<double> out;
    try {
      if (v.is_none()) return out;
      if (PyFloat_Check(v.ptr()) || PyLong_Check(v.ptr())) return {nb::cast<double>(nb::float_(v))};
      for (nb::handle item : v) out.push_back(nb::cast<double>(nb::float_(item)));
    } catch (const nb::python_error&) {
      throw TypeError(fmt::format("{} must be a number or a sequence of numbers, got {}", what, repr_of(v)));
    }
    return out;
  }
  static nb::object show(const std::vector<double>& v) {
    if (v.empty()) return nb::none();
    return v.size() == 1 ? nb::cast(v[0]) : nb::object(nb::tuple(nb::cast(v)));
  }
};

template <>
struct PyArg<std::vector<std::pair<std::int64_t, std::int64_t>>> {
  using type = nb::object;
  static std::vector<std::pair<std::int64_t, std::int64_t>> get(const nb::object& v, const std::string& what) {
    std::vector<std::pair<std::int64_t, std::int64_t>> out;
    try {
      for (nb::handle item : v) out.push_back(nb::cast<std::pair<std::int64_t, std::int64_t>>(item));
    } catch (const std::exception&) {
      throw TypeError(fmt::format("{} must be pairs of integers, got {}", what, repr_of(v)));
    }
    return out;
  }
  static nb::object show(const std::vector<std::pair<std::int64_t, std::int64_t>>& v) { return nb::tuple(nb::cast(v)); }
};

template <>
struct PyArg<common::Init> {
  using type = InitArg;
  static common::Init get(const InitArg& v, const std::string&) { return v.init; }
};
template <>
struct PyArg<nn::Activation> {
  using type = ActivationArg;
  static nn::Activation get(const ActivationArg& v, const std::string&) { return v.activation; }
};
template <>
struct PyArg<DType> {
  using type = DType;
  static DType get(DType v, const std::string&) { return v; }
  static nb::object show(DType v) { return dtype_object(v); }
};
/// A tensor, an array or None.
template <>
struct PyArg<Tensor> {
  using type = nb::object;
  static Tensor get(const nb::object& v, const std::string& what) {
    if (v.is_none()) return {};
    if (const Tensor* t = unwrap(v)) return *t;
    if (PyObject_CheckBuffer(v.ptr())) return to_tensor(v);
    throw TypeError(fmt::format("{} must be a Tensor or None, got {}", what, type_name_of(v)));
  }
  static nb::object show(const Tensor& t) { return wrap(t); }
};

/// Options that are recipes for parameters: None keeps the default, and they are no attributes.
template <typename T>
inline constexpr bool kRecipe = std::is_same_v<T, common::Init> || std::is_same_v<T, nn::Activation>;

/// An argument with the default that the member has in O{}, or without one.
template <typename O, typename M, bool kRequired>
struct Field {
  using value = M;
  const char* name;
  M O::* member;
};
template <typename O, typename M>
Field<O, M, false> field(const char* name, M O::* member) {
  return {name, member};
}
template <typename O, typename M>
Field<O, M, true> required(const char* name, M O::* member) {
  return {name, member};
}

template <typename O, typename M, bool kRequired>
auto arg_of(const Field<O, M, kRequired>& f) {
  if constexpr (kRequired) return nb::arg(f.name);
  else if constexpr (kRecipe<M>) return nb::arg(f.name).none() = nb::none();
  else return nb::arg(f.name).none() = PyArg<M>::show(O{}.*f.member);
}

template <typename O, typename M, bool kRequired>
void take(O& options, const char* cls, const Field<O, M, kRequired>& f, const typename PyArg<M>::type& value) {
  M made = PyArg<M>::get(value, std::string(cls) + ": " + f.name);
  if constexpr (std::is_same_v<M, common::Init>) {
    if (!made.is_set()) return;
  }
  options.*f.member = std::move(made);
}

/// Options are plain attributes, so that Python classes derived from a layer may set their own of the same name.
template <typename O, typename M, bool kRequired>
void show(nb::handle self, const O& options, const Field<O, M, kRequired>& f) {
  if constexpr (!kRecipe<M>) nb::setattr(self, f.name, PyArg<M>::show(options.*f.member));
  // A layer without a bias still has the attribute.
  if constexpr (std::is_same_v<M, bool>)
    if (std::string_view(f.name) == "has_bias" && !(options.*f.member)) nb::setattr(self, "bias", nb::none());
}

/// A cell made of F (train/function_cell.h).
template <typename F, typename Base = nn::Cell, typename... Fields>
auto bind_function(nb::module_& m, const char* doc, Fields... fields) {
  using T = nn::FunctionCell<F, Base>;
  auto c = cell_class<T, Base>(m, F::kName, doc);
  c.def(
      "__init__",
      [fields...](nb::pointer_and_handle<T> self, const typename PyArg<typename Fields::value>::type&... values) {
        F f{};
        (take(f, F::kName, fields, values), ...);
        construct_cell(self, f);
        (show(self.h, f, fields), ...);
      },
      arg_of(fields)...);
  return c;
}

/// Arguments that stand before the options.
template <typename... P>
struct At {
  std::array<const char*, sizeof...(P)> names;
};

template <typename T, typename Options, typename... P, std::size_t... I>
void make_layer(const nb::pointer_and_handle<T>& self, const char* cls, const At<P...>& at,
                const std::tuple<const typename PyArg<P>::type&...>& first, const Options& o,
                std::index_sequence<I...>) {
  const auto what = [&](std::size_t i) { return fmt::format("{}: {}", cls, at.names[i]); };
  construct_cell(self, PyArg<P>::get(std::get<I>(first), what(I))..., o);
  (nb::setattr(self.h, at.names[I], PyArg<P>::show(PyArg<P>::get(std::get<I>(first), ""))), ...);
  if constexpr (requires { o.has_bias; }) {
    if (!o.has_bias) nb::setattr(self.h, "bias", nb::none());
  }
}

template <typename T, typename Options, typename C, typename... P, std::size_t... I, typename... Fields>
void define_layer(C& c, const char* name, At<P...> at, std::index_sequence<I...> indices, Fields... fields) {
  c.def(
      "__init__",
      [name, at, indices, fields...](nb::pointer_and_handle<T> self, const typename PyArg<P>::type&... first,
                                     const typename PyArg<typename Fields::value>::type&... values) {
        Options o{};
        (take(o, name, fields, values), ...);
        make_layer<T>(self, name, at, std::tuple<const typename PyArg<P>::type&...>(first...), o, indices);
        (show(self.h, o, fields), ...);
        // Convolutions hold one number a dimension, however they were given.
        if constexpr (requires { self.p->spec().dilation; }) {
          const auto& spec = self.p->spec();
          nb::setattr(self.h, "kernel_size", nb::tuple(nb::cast(spec.kernel)));
          nb::setattr(self.h, "stride", nb::tuple(nb::cast(spec.stride)));
          nb::setattr(self.h, "dilation", nb::tuple(nb::cast(spec.dilation)));
        }
      },
      nb::arg(at.names[I])..., arg_of(fields)...);
}

/// A cell of class T, constructed as T(positional arguments..., Options).
template <typename T, typename Options, typename... P, typename... Fields>
auto bind_layer(nb::module_& m, const char* name, const char* doc, At<P...> at, Fields... fields) {
  auto c = cell_class<T, nn::Cell>(m, name, doc);
  define_layer<T, Options>(c, name, at, std::index_sequence_for<P...>{}, fields...);
  return c;
}

// One function a file of layers; bind_layers calls them.
void bind_activations(nb::module_& m);
void bind_conv_layers(nb::module_& m);
void bind_pool_layers(nb::module_& m);
void bind_norm_layers(nb::module_& m);
void bind_basic_layers(nb::module_& m);
void bind_recurrent_layers(nb::module_& m);
void bind_transformer_layers(nb::module_& m);

}  // namespace undertow::python
