// SPDX-License-Identifier: Apache-2.0
// Convolutions by pad_mode and number of dimensions, on the primitives conv2d and conv3d. One dimension is two with a
// height of 1.
#include <algorithm>
#include <cctype>

#include "undertow/ops/dispatch.h"
#include "undertow/ops/nn_common.h"
#include "undertow/ops/precision.h"
#include "undertow/ops/window.h"

namespace undertow::ops {
namespace {

struct Prepared {
  Tensor x, w;
  ir::Attrs attrs;
  bool line;  // one spatial dimension, seen as two
};

Ints front(const Ints& all, std::int64_t value, std::size_t count) {
  Ints out(count, value);
  out.insert(out.end(), all.begin(), all.end());
  return out;
}

Prepared prepare(const Tensor& x, const Tensor& w, const ConvNdOptions& o, const char* what) {
  const int rank = x.ndim() - 2;
  UNDERTOW_CHECK(rank >= 1 && rank <= 3 && w.ndim() == x.ndim(), ShapeError,
                 "{}: the input must be (N, C, spatial...) with 1 to 3 spatial dimensions and the weight have as many "
                 "dimensions, got shapes {} and {}",
                 what, x.shape().str(), w.shape().str());
  UNDERTOW_CHECK(o.groups >= 1, ValueError, "{}: groups must be positive, got {}", what, o.groups);
  Ints strides = spread(o.strides, rank, 1, "strides"), dilations = spread(o.dilations, rank, 1, "dilations");
  for (const Ints* v : {&strides, &dilations})
    UNDERTOW_CHECK(*std::min_element(v->begin(), v->end()) >= 1, ValueError,
                   "{}: strides and dilations must be positive, got ({}) and ({})", what, fmt::join(strides, ", "),
                   fmt::join(dilations, ", "));
  Ints pads = spread_pads(o.pads, rank, "pads");
  const DType t = undertow::promote(float_type(read_type(x)), float_type(read_type(w)));
  Prepared p{cast(x, t), cast(w, t), {}, rank == 1};
  if (p.line) {
    p.x = expand_dims(p.x, 2), p.w = expand_dims(p.w, 2);
    strides = front(strides, 1, 1), dilations = front(dilations, 1, 1), pads = front(pads, 0, 2);
  }
  p.attrs = {{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"groups", o.groups}};
  return p;
}

std::string name(const Prepared& p, const char* suffix) {
  return (p.x.ndim() == 5 ? "conv3d" : "conv2d") + std::string(suffix);
}

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

std::string checked_mode(const std::string& pad_mode, const Ints& padding, const std::string& what) {
  const std::string mode = lower(pad_mode);
  UNDERTOW_CHECK(mode == "same" || mode == "valid" || mode == "pad", ValueError,
                 "{}: pad_mode must be 'same', 'valid' or 'pad' but is '{}'", what, pad_mode);
  const bool none = std::all_of(padding.begin(), padding.end(), [](auto p) { return p == 0; });
  UNDERTOW_CHECK(mode == "pad" || none, ValueError,
                 "{}: padding must be 0 unless pad_mode is 'pad', but padding is ({}) with pad_mode '{}'", what,
                 fmt::join(padding, ", "), mode);
  return mode;
}

}  // namespace

Tensor conv(const Tensor& x, const Tensor& weight, const ConvNdOptions& options) {
  const Prepared p = prepare(x, weight, options, "conv");
  const Tensor y = call(name(p, ""), {p.x, p.w}, p.attrs);
  return p.line ? squeeze(y, {2}) : y;
}

Tensor conv_transpose(const Tensor& x, const Tensor& weight, const ConvNdOptions& options, Ints output_size) {
  Prepared p = prepare(x, weight, options, "conv_transpose");
  UNDERTOW_CHECK(x.shape(1) == weight.shape(0) && weight.shape(0) % options.groups == 0, ShapeError,
                 "conv_transpose: the input has {} channels, and the weight is for {} in {} groups (shapes {} and {})",
                 x.shape(1), weight.shape(0), options.groups, x.shape().str(), weight.shape().str());
  const int rank = p.x.ndim() - 2;
  const auto &strides = p.attrs.ints("strides"), &pads = p.attrs.ints("pads"), &dilations = p.attrs.ints("dilations");
  if (p.line && !output_size.empty()) output_size = front(output_size, 1, 1);
  Ints shape{x.shape(0), weight.shape(1) * options.groups};
  for (int d = 0; d < rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t reach = (p.w.shape(2 + d) - 1) * dilations[i] + 1, both = pads[2 * i] + pads[2 * i + 1];
    const std::int64_t least = (p.x.shape(2 + d) - 1) * strides[i] - both + reach;
    const std::int64_t out = output_size.empty() ? least : output_size.at(i);
    UNDERTOW_CHECK(out > 0 && (p.x.shape(2 + d) == 0 || (out >= least && out < least + strides[i])), ShapeError,
                   "conv_transpose: an input of shape {} with weight {} cannot give {} positions in dimension {}; "
                   "between {} and {} are possible",
                   x.shape().str(), weight.shape().str(), out, d, least, least + strides[i] - 1);
    shape.push_back(out);
  }
  p.attrs.set("input_shape", shape);
  const Tensor y = call(name(p, "_grad_input"), {p.x, p.w}, p.attrs);
  return p.line ? squeeze(y, {2}) : y;
}

namespace {
thread_local int same_is_valid = 0;
thread_local bool same_was_asked = false;
}  // namespace

SameIsValid::SameIsValid() {
  if (same_is_valid++ == 0) same_was_asked = false;
}
SameIsValid::~SameIsValid() { --same_is_valid; }
bool SameIsValid::asked() const { return same_was_asked; }

Ints window_pads(const std::string& pad_mode, const Ints& padding, const Ints& extents, const Ints& kernel,
                 const Ints& strides, const Ints& dilations, const std::string& what) {
  const std::string mode = checked_mode(pad_mode, padding, what);
  const int rank = static_cast<int>(extents.size());
  if (mode == "pad") return spread_pads(padding, rank, (what + ": padding").c_str());
  Ints pads(2 * extents.size(), 0);
  if (mode == "valid") return pads;
  if (same_is_valid > 0) {
    same_was_asked = true;
    return pads;
  }
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t out = (extents[i] + strides[i] - 1) / strides[i], reach = (kernel[i] - 1) * dilations[i] + 1;
    const std::int64_t need = std::max<std::int64_t>((out - 1) * strides[i] + reach - extents[i], 0);
    pads[2 * i] = need / 2;
    pads[2 * i + 1] = need - need / 2;
  }
  return pads;
}

TransposedWindow transposed_window(const std::string& pad_mode, const Ints& padding, const Ints& output_padding,
                                   const Ints& extents, const Ints& kernel, const Ints& strides, const Ints& dilations,
                                   const std::string& what) {
  const std::string mode = checked_mode(pad_mode, padding, what);
  const int rank = static_cast<int>(extents.size());
  TransposedWindow w{{}, spread_pads(mode == "pad" ? padding : Ints{}, rank, (what + ": padding").c_str())};
  const Ints extra = spread(output_padding, rank, 0, (what + ": output_padding").c_str());
  for (std::size_t i = 0; i < extents.size(); ++i) {
    UNDERTOW_CHECK(extra[i] >= 0 && extra[i] < std::max(strides[i], dilations[i]), ValueError,
                   "{}: output_padding must be at least 0 and less than stride or dilation, but it is ({}) with stride "
                   "({}) and dilation ({})",
                   what, fmt::join(extra, ", "), fmt::join(strides, ", "), fmt::join(dilations, ", "));
    UNDERTOW_CHECK(extra[i] == 0 || mode == "pad", ValueError,
                   "{}: output_padding must be 0 unless pad_mode is 'pad', but it is ({}) with pad_mode '{}'", what,
                   fmt::join(extra, ", "), mode);
    const std::int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    const std::int64_t full = (extents[i] - 1) * strides[i] + reach;
    std::int64_t out = full - w.pads[2 * i] - w.pads[2 * i + 1] + extra[i];
    if (mode == "valid") out = extents[i] * strides[i] + std::max<std::int64_t>(reach - strides[i], 0);
    if (mode == "same") {
      out = extents[i] * strides[i];
      const std::int64_t need = std::max<std::int64_t>(full - out, 0);
      w.pads[2 * i] = need / 2;
      w.pads[2 * i + 1] = need - need / 2;
    }
    w.output.push_back(out);
  }
  return w;
}

}  // namespace undertow::ops
