// SPDX-License-Identifier: Apache-2.0
// backend/host/control.h: cond, while and scan on devices that run on the host's own threads.
#pragma once

#include "undertow/backend/backend.h"

namespace undertow::backend {

/// Backend::make_control for host devices. The kernel runs the bodies' kernels in loops on the compute thread; it
/// allocates nothing, and ends at the first StepError, so that no loop runs on on garbage.
std::unique_ptr<Kernel> host_control(const ir::Node& node, std::vector<RegionBody> bodies);

/// What a `while` looks at on each trip: the stop flag of the command that this thread runs (may be null).
void set_stop_flag(const std::atomic<bool>* stop);

}  // namespace undertow::backend
