// SPDX-License-Identifier: Apache-2.0
// base/log.h: what the user should know though it is no error. Goes to standard error.
#pragma once

#include <string>

namespace undertow {

/// One line with time and level. Say each thing once: the caller remembers.
void log_warning(const std::string& message);

}  // namespace undertow
