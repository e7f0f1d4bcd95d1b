// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace undertow {

void log_warning(const std::string& message) {
  // A logger of our own: the host program's default one writes to standard output, among its results.
  static const auto logger =
      std::make_shared<spdlog::logger>("undertow", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->warn(message);
}

}  // namespace undertow
