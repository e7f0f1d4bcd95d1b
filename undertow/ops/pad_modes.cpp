// SPDX-License-Identifier: Apache-2.0
// Padding by what is there: slices of the input (with negative steps where mirrored) joined to it, one dimension after
// the other.
#include <algorithm>

#include "undertow/ops/image.h"
#include "undertow/ops/nn_common.h"

namespace undertow::ops {
namespace {

/// `count` elements of dimension d, from `first` on by `step`.
Tensor part(const Tensor& x, int d, std::int64_t first, std::int64_t step, std::int64_t count) {
  Ints begin(static_cast<std::size_t>(x.ndim()), 0), steps(begin.size(), 1);
  begin[static_cast<std::size_t>(d)] = first;
  steps[static_cast<std::size_t>(d)] = step;
  Shape shape = x.shape();
  shape[d] = count;
  return slice(x, begin, steps, shape);
}

Tensor pad_dimension(const Tensor& x, int d, std::int64_t low, std::int64_t high, const std::string& mode) {
  const std::int64_t n = x.shape(d), most = std::max(low, high);
  const std::int64_t have = mode == "reflect" ? n - 1 : mode == "replicate" ? (n > 0 ? most : 0) : n;
  UNDERTOW_CHECK(most <= have, ValueError,
                 "pad: mode '{}' can pad dimension {} of shape {} by at most {}, but the padding is ({}, {})", mode, d,
                 x.shape().str(), std::max<std::int64_t>(have, 0), low, high);
  std::vector<Tensor> parts;
  const auto edge = [&](std::int64_t at, std::int64_t count) {
    Shape s = x.shape();
    s[d] = count;
    return broadcast_to(part(x, d, at, 1, 1), s);
  };
  if (low > 0) {
    if (mode == "reflect") parts.push_back(part(x, d, low, -1, low));
    else if (mode == "symmetric") parts.push_back(part(x, d, low - 1, -1, low));
    else if (mode == "circular") parts.push_back(part(x, d, n - low, 1, low));
    else parts.push_back(edge(0, low));
  }
  parts.push_back(x);
  if (high > 0) {
    if (mode == "reflect") parts.push_back(part(x, d, n - 2, -1, high));
    else if (mode == "symmetric") parts.push_back(part(x, d, n - 1, -1, high));
    else if (mode == "circular") parts.push_back(part(x, d, 0, 1, high));
    else parts.push_back(edge(n - 1, high));
  }
  return concat(parts, d);
}

}  // namespace

Tensor pad_mode(const Tensor& x, const Ints& low, const Ints& high, const std::string& given, double value) {
  const auto rank = static_cast<std::size_t>(x.ndim());
  const std::string mode = given == "edge" ? "replicate" : given;
  UNDERTOW_CHECK(
      mode == "constant" || mode == "reflect" || mode == "symmetric" || mode == "replicate" || mode == "circular",
      ValueError, "pad: mode must be 'constant', 'reflect', 'symmetric', 'replicate', 'edge' or 'circular', got '{}'",
      given);
  UNDERTOW_CHECK(low.size() == rank && high.size() == rank, ValueError, "pad: {} low and {} high paddings for shape {}",
                 low.size(), high.size(), x.shape().str());
  Tensor y = x;
  Ints more_low(rank, 0), more_high(rank, 0);
  bool any = false;
  for (std::size_t i = 0; i < rank; ++i) {  // cropping first
    const int d = static_cast<int>(i);
    more_low[i] = std::max<std::int64_t>(low[i], 0), more_high[i] = std::max<std::int64_t>(high[i], 0);
    any = any || more_low[i] > 0 || more_high[i] > 0;
    const std::int64_t begin = std::max<std::int64_t>(-low[i], 0), end = std::max<std::int64_t>(-high[i], 0);
    if (begin == 0 && end == 0) continue;
    UNDERTOW_CHECK(begin + end <= x.shape(d), ValueError,
                   "pad: the padding ({}, {}) takes more than dimension {} of shape {} has", low[i], high[i], d,
                   x.shape().str());
    y = part(y, d, begin, 1, x.shape(d) - begin - end);
  }
  if (!any) return y;
  if (mode == "constant") return pad(y, more_low, more_high, value);
  for (std::size_t i = 0; i < rank; ++i)
    if (more_low[i] > 0 || more_high[i] > 0) y = pad_dimension(y, static_cast<int>(i), more_low[i], more_high[i], mode);
  return y;
}

Tensor pad_last(const Tensor& x, const Ints& padding, const std::string& mode, double value) {
  UNDERTOW_CHECK(padding.size() % 2 == 0 && padding.size() / 2 <= x.shape().size(), ValueError,
                 "pad: the padding must be pairs for at most the {} dimensions of shape {}, but it is ({})", x.ndim(),
                 x.shape().str(), fmt::join(padding, ", "));
  Ints low(x.shape().size(), 0), high = low;
  for (std::size_t i = 0; i < padding.size(); i += 2) {
    low[low.size() - 1 - i / 2] = padding[i];
    high[high.size() - 1 - i / 2] = padding[i + 1];
  }
  return pad_mode(x, low, high, mode, value);
}

}  // namespace undertow::ops
