// SPDX-License-Identifier: Apache-2.0
// python/src/control.h: Python's print within what is traced.
#pragma once

#include "python/src/common.h"

namespace undertow::python {

/// Around Python code that may be traced: while a trace compiles, the built-in `print` shows traced tensors at every
/// step (undertow/_print.py). Hold the GIL.
class PrintScope {
 public:
  PrintScope();
  ~PrintScope();
  PrintScope(const PrintScope&) = delete;

 private:
  bool swaps_;
};

void bind_control(nb::module_& m);

}  // namespace undertow::python
