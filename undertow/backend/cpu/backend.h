// SPDX-License-Identifier: Apache-2.0
// backend/cpu/backend.h: the device "CPU": generated kernels, oneDNN, and direct loops.
#pragma once

#include <memory>

#include "undertow/backend/backend.h"

namespace undertow::backend {

std::unique_ptr<Backend> make_cpu_backend();

}  // namespace undertow::backend
