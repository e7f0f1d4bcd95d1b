// SPDX-License-Identifier: Apache-2.0
// backend/reference/backend.h: the device "reference": every op by its plain definition, one node a kernel.
#pragma once

#include <memory>

#include "undertow/backend/backend.h"

namespace undertow::backend {

std::unique_ptr<Backend> make_reference_backend();

}  // namespace undertow::backend
