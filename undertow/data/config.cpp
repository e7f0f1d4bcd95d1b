// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/config.h"

#include <algorithm>
#include <thread>

namespace undertow::data {

int Config::workers() const {
  if (num_parallel_workers > 0) return num_parallel_workers;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u));
}

Config& config() {
  static Config c;
  return c;
}

}  // namespace undertow::data
