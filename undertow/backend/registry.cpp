// SPDX-License-Identifier: Apache-2.0
// The devices this library was built with.
#include "undertow/backend/backend.h"
#include "undertow/backend/cpu/backend.h"
#include "undertow/backend/reference/backend.h"
#include "undertow/base/check.h"

namespace undertow::backend {

Backend& get_backend(std::string_view name) {
  // Leaked on purpose: kernels may still run on other threads while the process exits.
  static Backend* cpu = make_cpu_backend().release();
  static Backend* reference = make_reference_backend().release();
  for (Backend* b : {cpu, reference})
    if (b->name() == name) return *b;
  throw DeviceError(
      fmt::format("unknown device '{}': this build has '{}' and '{}'", name, cpu->name(), reference->name()));
}

}  // namespace undertow::backend
