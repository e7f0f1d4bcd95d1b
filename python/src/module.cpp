// SPDX-License-Identifier: Apache-2.0
// The extension module undertow._core: calls one function a bind file.
#include <cstdlib>

#include "python/src/cells.h"

namespace undertow::python {
void explain_wrong_arguments(nb::module_& m);  // arguments.cpp
}

NB_MODULE(_core, m) {
  using namespace undertow::python;
  // What a user's globals keep alive beyond the interpreter's end is no fault; our own tests want to know.
  nb::set_leak_warnings(std::getenv("UNDERTOW_LEAK_CHECK") != nullptr);
  bind_errors(m);
  bind_dtypes(m);
  bind_tensor(m);
  bind_parameter(m);
  auto ops = m.def_submodule("ops");
  bind_ops(ops);
  bind_ops_nn(ops);
  bind_tensor_methods(m);
  auto nn = m.def_submodule("nn");
  bind_cell(nn);
  bind_layers(nn);
  bind_losses(m, nn);
  bind_schedules(nn);
  bind_optimizers(nn);
  bind_runtime(m);
  auto data = m.def_submodule("data");
  bind_data(data);
  auto train = m.def_submodule("train");
  bind_wrapped(train, nn);
  bind_train(train, nn);
  bind_serialization(train);
  auto amp = m.def_submodule("amp");
  bind_amp(amp);
  explain_wrong_arguments(m);
}
