// SPDX-License-Identifier: Apache-2.0
// runtime/context.h: process-wide settings, and the device they lead to.
#pragma once

#include <optional>
#include <string>

#include "undertow/base/dtype.h"

namespace undertow {

enum Mode { GRAPH_MODE = 0, PYNATIVE_MODE = 1 };

/// What set_context changes; members that are left out stay as they are.
struct ContextOptions {
  std::optional<Mode> mode;
  std::optional<std::string> device_target;  ///< "CPU", "reference"; "Ascend" and "GPU" run on the CPU with one warning
  std::optional<bool> strict_device;         ///< "Ascend"/"GPU" without such a device is a DeviceError
  /// The half type of mixed precision: "float16", "bfloat16", or "auto", the one that the device is fast in.
  std::optional<std::string> half;
};

struct Context {
  Mode mode = PYNATIVE_MODE;
  std::string device_target = "CPU";  ///< as the user gave it
  std::string device = "CPU";         ///< the backend that runs
  bool strict_device = false;
  std::string half = "auto";
};

/// Throws DeviceError for an unknown device and ValueError for another half type, before anything changes.
void set_context(const ContextOptions& options);
const Context& context();
inline void set_device(const std::string& target) { set_context({.device_target = target}); }
/// The type in which mixed precision computes: `asked`, else the context's. Where that is "auto" and the device is fast
/// in no half type: float32, with one warning. Throws TypeError for other types than the halves and float32.
DType half_type(std::optional<DType> asked = {});
/// Keys parameter initialisation, random ops and the data pipeline's default seed.
void set_seed(long long seed);

}  // namespace undertow
