// SPDX-License-Identifier: Apache-2.0
// runtime/branches.h: code that is traced and asks which way a flag of the step falls ("if finite: optimizer(grads)").
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "undertow/runtime/trace.h"

namespace undertow::runtime {

/// Traces `f`. Where it asks for flags (see decide), it is traced once for each way that they may fall, and its outputs
/// and parameter writes are selected by them when the step runs: all ways are computed, and what they share once.
/// Throws TypeError where the ways return other numbers, dtypes or shapes, TraceError where they are too many.
std::vector<Tensor> trace_branches(Trace& trace, const std::function<std::vector<Tensor>()>& f);

/// The way that is being traced, for a flag of the trace in progress; nothing where there is no value to branch on.
std::optional<bool> decide(const Tensor& condition);

}  // namespace undertow::runtime
