// SPDX-License-Identifier: Apache-2.0
// python/src/ops_bind.h: what the files that bind undertow.ops share. A function is bound once, in undertow.ops; the
// Tensor's method of the same name is that function (tensor_methods.cpp has the list of names).
#pragma once

#include "python/src/common.h"
#include "undertow/base/check.h"

namespace undertow::python {

using ops::Operand;

inline const nb::arg input_ = nb::arg("input");

/// An argument that may be left out or be None.
inline auto none_arg(const char* name) { return nb::arg(name).none() = nb::none(); }

/// The Tensors of a sequence.
std::vector<Tensor> tensors(nb::handle items, const char* what);
inline nb::object as_tuple(const std::vector<Tensor>& xs) {
  nb::list out;
  for (const auto& x : xs) out.append(wrap(x));
  return nb::tuple(out);
}

/// The axes of `None`, an integer, or a sequence.
template <typename F>
void reduction(nb::module_& m, const char* name, F f, const char* doc) {
  m.def(name, f, input_, none_arg("axis"), "keep_dims"_a = false, doc);
  m.def(name, f, input_, none_arg("axis"), "keepdims"_a = false);
  m.def(name, f, input_, none_arg("dim"), "keepdim"_a = false);
  // As NumPy's functions call a Tensor's methods (np.mean(tensor)).
  m.def(
      name,
      [f](const Tensor& x, const AxesArg& axis, std::optional<DType> dtype, nb::handle out, bool keep) {
        UNDERTOW_CHECK(out.is_none(), TypeError, "a Tensor's method takes no 'out'");
        return f(dtype ? ops::cast(x, *dtype) : x, axis, keep);
      },
      input_, none_arg("axis"), none_arg("dtype"), none_arg("out"), "keepdims"_a = false);
}

/// A number as MindSpore takes them: a Python number or a Tensor of one element that has its value.
double number_of(nb::handle o, const char* what);
std::int64_t integer_of(nb::handle o, const char* what);
/// None: 0, the global seed.
std::uint64_t seed_of(nb::handle o);

// One a file; bind_ops calls them.
void bind_elementwise(nb::module_& m);
void bind_creation(nb::module_& m);
void bind_reductions(nb::module_& m);
void bind_order(nb::module_& m);
void bind_shapes(nb::module_& m);
void bind_indexing(nb::module_& m);
void bind_linalg(nb::module_& m);

}  // namespace undertow::python
