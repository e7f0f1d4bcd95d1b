// SPDX-License-Identifier: Apache-2.0
// runtime/context.h: process-wide settings, and the device they lead to.
#pragma once

#include <optional>
#include <string>

namespace undertow {

enum Mode { GRAPH_MODE = 0, PYNATIVE_MODE = 1 };

/// What set_context changes; members that are left out stay as they are.
struct ContextOptions {
  std::optional<Mode> mode;
  std::optional<std::string> device_target;  ///< "CPU", "reference"; "Ascend" and "GPU" run on the CPU with one warning
  std::optional<bool> strict_device;         ///< "Ascend"/"GPU" without such a device is a DeviceError
};

struct Context {
  Mode mode = PYNATIVE_MODE;
  std::string device_target = "CPU";  ///< as the user gave it
  std::string device = "CPU";         ///< the backend that runs
  bool strict_device = false;
};

/// Throws DeviceError for an unknown device, before anything changes.
void set_context(const ContextOptions& options);
const Context& context();
inline void set_device(const std::string& target) { set_context({.device_target = target}); }
/// Keys parameter initialisation, random ops and the data pipeline's default seed.
void set_seed(long long seed);

}  // namespace undertow
