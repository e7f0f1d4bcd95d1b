// SPDX-License-Identifier: Apache-2.0
// ops/window.h: functions with a window over 1, 2 or 3 spatial dimensions: convolution and pooling.
//
// Inputs are (N, C, spatial...). Lists of options hold one number a spatial dimension; an empty list stands for the
// default, one number for all dimensions. Paddings may also be two a dimension: (low, high, low, high, ...).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "undertow/tensor/tensor.h"

namespace undertow::ops {

// ---- convolution (ops/conv_nd.cpp)
struct ConvNdOptions {
  std::vector<std::int64_t> strides, pads, dilations;  // defaults 1, 0, 1
  std::int64_t groups = 1;
};
/// x (N, C, d...), weight (O, C / groups, k...), with 1, 2 or 3 spatial dimensions.
Tensor conv(const Tensor& x, const Tensor& weight, const ConvNdOptions& options = {});
/// The gradient of `conv` with respect to its input, as a function: x (N, C, d...), weight (C, O / groups, k...).
/// `output_size` holds the spatial extents of the result; empty: (d - 1) * stride - pads + (k - 1) * dilation + 1.
Tensor conv_transpose(const Tensor& x, const Tensor& weight, const ConvNdOptions& options = {},
                      std::vector<std::int64_t> output_size = {});

/// What `pad_mode` ("same", "valid", "pad", any case) means for an input of these spatial extents: two paddings a
/// dimension. "same": ceil(extent / stride) outputs, the odd padding at the end. `padding` counts with "pad" only, and
/// must be 0 otherwise. Throws ValueError; `what` ("conv2d") starts its messages.
std::vector<std::int64_t> window_pads(const std::string& pad_mode, const std::vector<std::int64_t>& padding,
                                      const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& kernel,
                                      const std::vector<std::int64_t>& strides,
                                      const std::vector<std::int64_t>& dilations, const std::string& what);
/// While one exists, window_pads on this thread takes "same" for "valid": what would the shapes be?
class SameIsValid {
 public:
  SameIsValid();
  ~SameIsValid();
  SameIsValid(const SameIsValid&) = delete;
  bool asked() const;  ///< some window had "same"
};
/// Spatial extents of a transposed convolution by pad_mode: "same" in * stride, "valid" in * stride + max(k - stride,
/// 0), "pad" as conv_transpose; and the paddings that give them.
struct TransposedWindow {
  std::vector<std::int64_t> output, pads;
};
TransposedWindow transposed_window(const std::string& pad_mode, const std::vector<std::int64_t>& padding,
                                   const std::vector<std::int64_t>& output_padding,
                                   const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& kernel,
                                   const std::vector<std::int64_t>& strides, const std::vector<std::int64_t>& dilations,
                                   const std::string& what);

// ---- pooling (ops/pool_nd.cpp). Inputs may also be (C, spatial...).
struct PoolNdOptions {
  std::vector<std::int64_t> kernel;           // its length says how many spatial dimensions there are
  std::vector<std::int64_t> strides;          // default: the kernel
  std::vector<std::int64_t> pads, dilations;  // defaults 0, 1; dilations of maxima only
  bool ceil_mode = false;                     // a last window may reach over the edge
  bool count_include_pad = true;              // averages: padding counts as elements (what ceil_mode adds never does)
  std::optional<std::int64_t> divisor;        // averages: instead of the number of elements
};
/// Largest of each window; NaN wins.
Tensor max_pool(const Tensor& x, const PoolNdOptions& options);
/// And where it stands: int64 positions in the flattened spatial dimensions; of equal ones the first.
std::pair<Tensor, Tensor> max_pool_positions(const Tensor& x, const PoolNdOptions& options);
Tensor avg_pool(const Tensor& x, const PoolNdOptions& options);
/// (sum of x^p)^(1/p) of each window, with p = norm_type not 0.
Tensor lp_pool(const Tensor& x, double norm_type, const PoolNdOptions& options);
/// Windows from floor(i * in / out) to ceil((i + 1) * in / out), for each of the sizes (0: as the input has).
Tensor adaptive_avg_pool(const Tensor& x, const std::vector<std::int64_t>& output_size);
Tensor adaptive_max_pool(const Tensor& x, const std::vector<std::int64_t>& output_size);
std::pair<Tensor, Tensor> adaptive_max_pool_positions(const Tensor& x, const std::vector<std::int64_t>& output_size);
/// Puts x at the positions that max_pool_positions gave, among zeros, in a tensor with these spatial extents.
Tensor max_unpool(const Tensor& x, const Tensor& positions, const std::vector<std::int64_t>& output_size);

}  // namespace undertow::ops
