// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/context.h"

#include <set>

#include "undertow/backend/backend.h"
#include "undertow/base/check.h"
#include "undertow/base/log.h"
#include "undertow/runtime/trace.h"

namespace undertow {
namespace {

Context& mutable_context() {
  static Context c;
  return c;
}

/// The backend for a target, or DeviceError.
std::string resolve(const std::string& target, bool strict) {
  if (target == "CPU" || target == "reference") return target;
  UNDERTOW_CHECK(
      target == "Ascend" || target == "GPU", DeviceError,
      "unknown device_target '{}'; known are 'CPU', 'reference', and 'GPU' and 'Ascend', which run on the CPU "
      "where there is no such device",
      target);
  UNDERTOW_CHECK(!strict, DeviceError,
                 "device_target '{}': no such device here, and strict_device=True forbids running on the CPU instead",
                 target);
  static std::set<std::string> told;
  if (told.insert(target).second)
    log_warning(
        fmt::format("device_target '{}': no such device here; running on the CPU with the same results", target));
  return "CPU";
}

}  // namespace

void set_context(const ContextOptions& o) {
  Context next = mutable_context();
  if (o.mode) {
    UNDERTOW_CHECK(*o.mode == GRAPH_MODE || *o.mode == PYNATIVE_MODE, ValueError,
                   "mode must be GRAPH_MODE (0) or PYNATIVE_MODE (1), got {}", static_cast<int>(*o.mode));
    next.mode = *o.mode;
  }
  if (o.half) {
    UNDERTOW_CHECK(*o.half == "auto" || *o.half == "float16" || *o.half == "bfloat16", ValueError,
                   "half must be \"auto\", \"float16\" or \"bfloat16\", got \"{}\"", *o.half);
    next.half = *o.half;
  }
  if (o.strict_device) next.strict_device = *o.strict_device;
  if (o.device_target) {
    next.device = resolve(*o.device_target, next.strict_device);
    next.device_target = *o.device_target;
  }
  mutable_context() = next;
}

const Context& context() { return mutable_context(); }

DType half_type(std::optional<DType> asked) {
  if (asked) {
    UNDERTOW_CHECK(is_half(*asked) || *asked == DType::kFloat32, TypeError,
                   "mixed precision computes in float16, bfloat16 or float32, not in {}", name_of(*asked));
    return *asked;
  }
  if (context().half != "auto") return dtype_from_name(context().half);
  if (const auto native = backend::get_backend(context().device).caps().half) return *native;
  static bool told = false;
  if (!told) {
    told = true;
    log_warning(fmt::format(
        "mixed precision: {} is fast in no half type here, so the levels O1 to O3 and auto compute in float32; "
        "set_context(half=\"bfloat16\") or a dtype argument asks for a half type all the same",
        context().device));
  }
  return DType::kFloat32;
}

void set_seed(long long seed) {
  UNDERTOW_CHECK(seed >= 0, ValueError, "the seed must not be negative, got {}", seed);
  runtime::set_seed(static_cast<std::uint64_t>(seed));
}

}  // namespace undertow
