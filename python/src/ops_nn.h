// SPDX-License-Identifier: Apache-2.0
// python/src/ops_nn.h: the files of undertow.ops that hold functions of neural networks, and what they share.
#pragma once

#include "python/src/common.h"

namespace undertow::python {

/// A tensor, or None for one that is left out.
using MaybeTensor = std::optional<Tensor>;
inline Tensor or_none(const MaybeTensor& t) { return t.value_or(Tensor()); }

void bind_ops_activations(nb::module_& m);
void bind_ops_window(nb::module_& m);
void bind_ops_losses(nb::module_& m);
void bind_ops_image(nb::module_& m);
void bind_ops_norm(nb::module_& m);

}  // namespace undertow::python
