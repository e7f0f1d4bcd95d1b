// SPDX-License-Identifier: Apache-2.0
// backend/host/launch.h: the sink loop of devices that run on the host's own threads.
#pragma once

#include "undertow/backend/backend.h"

namespace undertow::backend {

/// Backend::launch for host devices: N x { pop slot; compute; guard; commit; always; record }. Allocates nothing.
LaunchResult host_launch(Program& program, const LaunchArgs& args);

}  // namespace undertow::backend
