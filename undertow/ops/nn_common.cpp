// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/nn_common.h"

namespace undertow::ops {

Ints spread(const Ints& values, int rank, std::int64_t missing, const char* what) {
  const auto n = static_cast<std::size_t>(rank);
  if (values.empty()) return Ints(n, missing);
  if (values.size() == 1) return Ints(n, values[0]);
  UNDERTOW_CHECK(values.size() == n, ValueError, "{} must be one integer or {}, got ({})", what, rank,
                 fmt::join(values, ", "));
  return values;
}

Ints spread_pads(const Ints& values, int rank, const char* what) {
  const auto n = static_cast<std::size_t>(rank);
  for (const auto v : values)
    UNDERTOW_CHECK(v >= 0, ValueError, "{} must not be negative, got ({})", what, fmt::join(values, ", "));
  if (values.empty()) return Ints(2 * n, 0);
  if (values.size() == 1) return Ints(2 * n, values[0]);
  if (values.size() == 2 * n) return values;
  UNDERTOW_CHECK(values.size() == n, ValueError, "{} must be 1, {} or {} integers, got ({})", what, rank, 2 * rank,
                 fmt::join(values, ", "));
  Ints both;
  for (const auto v : values) both.insert(both.end(), {v, v});
  return both;
}

Tensor per_channel(const Tensor& t, const Tensor& x) {
  Ints shape(static_cast<std::size_t>(x.ndim()), 1);
  shape[x.ndim() > 1 ? 1 : 0] = -1;
  return reshape(t, shape);
}

}  // namespace undertow::ops
