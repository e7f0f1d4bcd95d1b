// SPDX-License-Identifier: Apache-2.0
// base/check.h: checks that throw a member of the error family with a formatted message. Not for public headers (fmt).
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "undertow/base/error.h"

/// Throws `ErrorType` with the fmt-formatted message unless `condition` holds. The message is built only on failure.
#define UNDERTOW_CHECK(condition, ErrorType, ...)                            \
  do {                                                                       \
    if (!(condition)) throw ::undertow::ErrorType(fmt::format(__VA_ARGS__)); \
  } while (false)

/// An invariant of Undertow itself; its failure is a fault to report, never the user's.
#define UNDERTOW_ASSERT(condition)                                                                         \
  do {                                                                                                     \
    if (!(condition))                                                                                      \
      throw ::undertow::Error(fmt::format("internal error at {}:{}: {}", __FILE__, __LINE__, #condition)); \
  } while (false)
