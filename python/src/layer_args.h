// SPDX-License-Identifier: Apache-2.0
// python/src/layer_args.h: arguments of layers: initializers, activations, pairs and paddings.
#pragma once

#include "python/src/cells.h"
#include "undertow/base/check.h"
#include "undertow/train/initializer.h"
#include "undertow/train/layers.h"

namespace undertow::python {

/// None, a name, a number, a Tensor, or an Initializer.
struct InitArg {
  common::Init init;
};
/// None, a name, or a cell.
struct ActivationArg {
  nn::Activation activation;
};

InitArg to_init(nb::handle object);  ///< throws TypeError or ValueError
ActivationArg to_activation(nb::handle object);

}  // namespace undertow::python

namespace nanobind::detail {

// Their errors (an unknown name, a wrong type) are ours to word, so they pass through a handle.
template <>
struct type_caster<undertow::python::InitArg> {
  NB_TYPE_CASTER(undertow::python::InitArg, const_name("str | float | Tensor | Initializer | None"))
  bool from_python(handle src, uint32_t, cleanup_list*) {
    value = undertow::python::to_init(src);
    return true;
  }
};
template <>
struct type_caster<undertow::python::ActivationArg> {
  NB_TYPE_CASTER(undertow::python::ActivationArg, const_name("str | Cell | None"))
  bool from_python(handle src, uint32_t, cleanup_list*) {
    value = undertow::python::to_activation(src);
    return true;
  }
};

}  // namespace nanobind::detail
