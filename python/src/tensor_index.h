// SPDX-License-Identifier: Apache-2.0
// python/src/tensor_index.h: a Tensor's square brackets and single elements.
#pragma once

#include "python/src/common.h"

namespace undertow::python {

/// The only element as a Python number; `what` asks for it.
nb::object item(const Tensor& t, const char* what);
Tensor get_item(const Tensor& x, nb::handle key);
/// Outside of a trace the tensor's memory is written. Within one, and for what was computed there, a new tensor takes
/// the old one's place in the Python object: what reads the object later sees the new values, as it would in place.
void set_item(nb::handle self, nb::handle key, nb::handle value);
/// `self` takes the values of `value`, which has its shape: in place, or as set_item does within a trace.
void write(nb::handle self, const Tensor& value);
nb::object item_set(nb::handle self, const nb::args& args);
/// The Python object holds another tensor from now on (tensor.cpp).
void rewrap(nb::handle object, const Tensor& tensor);

}  // namespace undertow::python
