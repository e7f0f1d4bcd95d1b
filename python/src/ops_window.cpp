// SPDX-License-Identifier: Apache-2.0
// undertow.ops: convolution and pooling over 1, 2 or 3 dimensions.
#include "python/src/ops_nn.h"
#include "undertow/base/check.h"
#include "undertow/ops/window.h"

namespace undertow::python {
namespace {

using List = std::vector<std::int64_t>;

/// One integer for all, or `rank` of them.
List numbers(const Ints& v, int rank, const std::string& what) {
  if (v.values.size() == 1) return List(static_cast<std::size_t>(rank), v.values[0]);
  UNDERTOW_CHECK(static_cast<int>(v.values.size()) == rank, ValueError, "{} must be one integer or {}, got {}", what,
                 rank, v.values.size());
  return v.values;
}

List extents(const Tensor& x) { return {x.shape().begin() + 2, x.shape().end()}; }

void need_dimensions(const Tensor& x, const Tensor& w, int rank, const std::string& op) {
  UNDERTOW_CHECK(x.ndim() == rank + 2 && w.ndim() == rank + 2, ShapeError,
                 "{}: input and weight must have {} dimensions, got shapes {} and {}", op, rank + 2, x.shape().str(),
                 w.shape().str());
}

Tensor with_bias(const Tensor& y, const MaybeTensor& bias, const std::string& op) {
  if (!bias) return y;
  UNDERTOW_CHECK(bias->ndim() == 1 && bias->shape(0) == y.shape(1), ShapeError,
                 "{}: the bias must have one value for each of the {} output channels, got shape {}", op, y.shape(1),
                 bias->shape().str());
  List shape(static_cast<std::size_t>(y.ndim()), 1);
  shape[1] = -1;
  return ops::add(y, ops::reshape(*bias, shape));
}

template <int Rank>
Tensor conv(const Tensor& x, const Tensor& w, const MaybeTensor& bias, const Ints& stride, const std::string& pad_mode,
            const Ints& padding, const Ints& dilation, std::int64_t groups) {
  const std::string op = fmt::format("conv{}d", Rank);
  need_dimensions(x, w, Rank, op);
  ops::ConvNdOptions o{numbers(stride, Rank, op + ": stride"), {}, numbers(dilation, Rank, op + ": dilation"), groups};
  o.pads = ops::window_pads(pad_mode, padding.values, extents(x), extents(w), o.strides, o.dilations, op);
  return with_bias(ops::conv(x, w, o), bias, op);
}

template <int Rank>
Tensor conv_transpose(const Tensor& x, const Tensor& w, const std::string& pad_mode, const Ints& padding,
                      const Ints& stride, const Ints& dilation, std::int64_t group, const Ints& output_padding) {
  const std::string op = fmt::format("conv{}d_transpose", Rank);
  need_dimensions(x, w, Rank, op);
  ops::ConvNdOptions o{numbers(stride, Rank, op + ": stride"), {}, numbers(dilation, Rank, op + ": dilation"), group};
  const auto window = ops::transposed_window(pad_mode, padding.values, output_padding.values, extents(x), extents(w),
                                             o.strides, o.dilations, op);
  o.pads = window.pads;
  return ops::conv_transpose(x, w, o, window.output);
}

ops::PoolNdOptions pool(int rank, const char* name, const Ints& kernel, const std::optional<Ints>& stride,
                        const Ints& padding, bool ceil_mode) {
  const std::string op = fmt::format("{}{}d", name, rank);
  ops::PoolNdOptions o;
  o.kernel = numbers(kernel, rank, op + ": kernel_size");
  if (stride && !stride->values.empty()) o.strides = numbers(*stride, rank, op + ": stride");
  o.pads = padding.values;
  o.ceil_mode = ceil_mode;
  return o;
}

nb::object values_and_positions(const std::pair<Tensor, Tensor>& both) {
  return nb::make_tuple(wrap(both.first), wrap(both.second));
}

template <int Rank>
nb::object max_pool(const Tensor& x, const Ints& kernel, const std::optional<Ints>& stride, const Ints& padding,
                    const Ints& dilation, bool return_indices, bool ceil_mode) {
  auto o = pool(Rank, "max_pool", kernel, stride, padding, ceil_mode);
  o.dilations = numbers(dilation, Rank, "max_pool: dilation");
  if (!return_indices) return wrap(ops::max_pool(x, o));
  return values_and_positions(ops::max_pool_positions(x, o));
}

template <int Rank>
Tensor avg_pool(const Tensor& x, const Ints& kernel, const std::optional<Ints>& stride, const Ints& padding,
                bool ceil_mode, bool count_include_pad, std::optional<std::int64_t> divisor) {
  auto o = pool(Rank, "avg_pool", kernel, stride, padding, ceil_mode);
  o.count_include_pad = count_include_pad;
  if (divisor && *divisor != 0) o.divisor = *divisor;
  return ops::avg_pool(x, o);
}

/// None, alone or in a tuple, keeps the input's size.
List adaptive_size(nb::handle size, int rank, const std::string& op) {
  const auto one = [&](nb::handle v) -> std::int64_t {
    if (v.is_none()) return 0;
    if (!PyLong_Check(v.ptr()))
      throw TypeError(fmt::format("{}: output_size must be integers or None, got {}", op, repr_of(v)));
    const auto n = nb::cast<std::int64_t>(v);
    UNDERTOW_CHECK(n > 0 || n == -1, ValueError, "{}: output_size must be positive but is {}", op, n);
    return n == -1 ? 0 : n;
  };
  List out;
  if (PyTuple_Check(size.ptr()) || PyList_Check(size.ptr())) {
    for (nb::handle v : nb::borrow<nb::object>(size)) out.push_back(one(v));
    UNDERTOW_CHECK(static_cast<int>(out.size()) == rank, ValueError, "{}: output_size must be one number or {}, got {}",
                   op, rank, repr_of(size));
  } else {
    out.assign(static_cast<std::size_t>(rank), one(size));
  }
  return out;
}

Tensor unpool(const Tensor& x, const Tensor& indices, int rank, const Ints& kernel, const std::optional<Ints>& stride,
              const Ints& padding, const std::optional<Ints>& output_size) {
  const std::string op = fmt::format("max_unpool{}d", rank);
  UNDERTOW_CHECK(x.ndim() == rank + 1 || x.ndim() == rank + 2, ShapeError,
                 "{}: the input must have {} or {} dimensions, got shape {}", op, rank + 1, rank + 2, x.shape().str());
  List size;
  if (output_size && !output_size->values.empty()) {
    UNDERTOW_CHECK(static_cast<int>(output_size->values.size()) >= rank, ValueError,
                   "{}: output_size must have {} numbers or more, got {}", op, rank, output_size->values.size());
    size.assign(output_size->values.end() - rank, output_size->values.end());
  } else {
    const List k = numbers(kernel, rank, op + ": kernel_size"), p = numbers(padding, rank, op + ": padding");
    const List s = stride ? numbers(*stride, rank, op + ": stride") : k;
    for (int d = 0; d < rank; ++d) {
      const auto i = static_cast<std::size_t>(d);
      size.push_back((x.shape(x.ndim() - rank + d) - 1) * s[i] - 2 * p[i] + k[i]);
    }
  }
  return ops::max_unpool(x, indices, size);
}

template <int Rank>
void bind_rank(nb::module_& m) {
  const auto named = [](const char* base) { return fmt::format(fmt::runtime(base), Rank); };
  m.def(named("conv{}d").c_str(), &conv<Rank>, "input"_a, "weight"_a, "bias"_a.none() = nb::none(), "stride"_a = 1,
        "pad_mode"_a = "valid", "padding"_a = 0, "dilation"_a = 1, "groups"_a = 1,
        "Convolution: input (N, C, spatial...), weight (O, C / groups, kernel...).");
  m.def(named("conv{}d_transpose").c_str(), &conv_transpose<Rank>, "inputs"_a, "weight"_a, "pad_mode"_a = "valid",
        "padding"_a = 0, "stride"_a = 1, "dilation"_a = 1, "group"_a = 1, "output_padding"_a = 0,
        "Transposed convolution: input (N, C, spatial...), weight (C, O / group, kernel...).");
  if constexpr (Rank == 3) {
    m.def(
        "max_pool3d",
        [](const Tensor& x, const Ints& k, const std::optional<Ints>& s, const Ints& p, const Ints& d, bool ceil_mode,
           bool positions) { return max_pool<3>(x, k, s, p, d, positions, ceil_mode); },
        "x"_a, "kernel_size"_a, "stride"_a.none() = nb::none(), "padding"_a = 0, "dilation"_a = 1,
        "ceil_mode"_a = false, "return_indices"_a = false,
        "Largest of each window; stride defaults to the kernel. NaN wins.");
  } else {
    m.def(named("max_pool{}d").c_str(), &max_pool<Rank>, "x"_a, "kernel_size"_a, "stride"_a.none() = nb::none(),
          "padding"_a = 0, "dilation"_a = 1, "return_indices"_a = false, "ceil_mode"_a = false,
          "Largest of each window; stride defaults to the kernel. NaN wins.");
  }
  m.def(named("avg_pool{}d").c_str(), &avg_pool<Rank>, "input_x"_a, "kernel_size"_a = 1, "stride"_a.none() = 1,
        "padding"_a = 0, "ceil_mode"_a = false, "count_include_pad"_a = true, "divisor_override"_a.none() = nb::none(),
        "Mean of each window.");
  m.def(
      named("adaptive_avg_pool{}d").c_str(),
      [](const Tensor& x, nb::handle size) {
        return ops::adaptive_avg_pool(x, adaptive_size(size, Rank, "adaptive_avg_pool"));
      },
      "input"_a, "output_size"_a.none(), "Means of windows that make up output_size.");
  m.def(
      named("adaptive_max_pool{}d").c_str(),
      [](const Tensor& x, nb::handle size, bool positions) -> nb::object {
        const List out = adaptive_size(size, Rank, "adaptive_max_pool");
        if (!positions) return wrap(ops::adaptive_max_pool(x, out));
        return values_and_positions(ops::adaptive_max_pool_positions(x, out));
      },
      "input"_a, "output_size"_a.none(), "return_indices"_a = false, "Maxima of windows that make up output_size.");
  m.def(
      named("max_unpool{}d").c_str(),
      [](const Tensor& x, const Tensor& at, const Ints& k, const std::optional<Ints>& s, const Ints& p,
         const std::optional<Ints>& size) { return unpool(x, at, Rank, k, s, p, size); },
      "x"_a, "indices"_a, "kernel_size"_a, "stride"_a.none() = nb::none(), "padding"_a = 0,
      "output_size"_a.none() = nb::none(), "Puts values back to where the maximum pooling found them.");
  if constexpr (Rank < 3)
    m.def(
        named("lp_pool{}d").c_str(),
        [](const Tensor& x, double p, const Ints& k, const std::optional<Ints>& s, bool ceil_mode) {
          return ops::lp_pool(x, p, pool(Rank, "lp_pool", k, s, Ints{{0}, true}, ceil_mode));
        },
        "x"_a, "norm_type"_a, "kernel_size"_a, "stride"_a.none() = nb::none(), "ceil_mode"_a = false,
        "(sum of x^p)^(1/p) of each window.");
}

}  // namespace

void bind_ops_window(nb::module_& m) {
  bind_rank<1>(m);
  bind_rank<2>(m);
  bind_rank<3>(m);
  // MindSpore's primitives in one: pad_mode and layout as their constructors take them.
  m.def(
      "_pool",
      [](const Tensor& x, bool max, const Ints& kernel, const Ints& strides, const std::string& pad_mode,
         const Ints& pads, bool ceil_mode, bool count_include_pad, std::int64_t divisor) {
        const int rank = x.ndim() - 2;
        UNDERTOW_CHECK(rank >= 1, ShapeError, "the input must be (N, C, spatial...), got shape {}", x.shape().str());
        ops::PoolNdOptions o;
        o.kernel = numbers(kernel, rank, "kernel_size");
        o.strides = numbers(strides, rank, "strides");
        o.pads = ops::window_pads(pad_mode, pads.values, extents(x), o.kernel, o.strides,
                                  List(static_cast<std::size_t>(rank), 1), "pooling");
        o.ceil_mode = ceil_mode;
        o.count_include_pad = count_include_pad && (pad_mode == "pad" || pad_mode == "PAD");
        if (divisor != 0) o.divisor = divisor;
        return max ? ops::max_pool(x, o) : ops::avg_pool(x, o);
      },
      "x"_a, "max"_a, "kernel_size"_a, "strides"_a, "pad_mode"_a, "pads"_a = 0, "ceil_mode"_a = false,
      "count_include_pad"_a = true, "divisor"_a = 0);
  m.def(
      "_conv_input",
      [](const Tensor& dy, const Tensor& w, const Ints& size, const Ints& stride, const std::string& pad_mode,
         const Ints& padding, const Ints& dilation, std::int64_t groups) {
        const int rank = dy.ndim() - 2;
        need_dimensions(dy, w, rank, "Conv2DTranspose");
        ops::ConvNdOptions o{numbers(stride, rank, "stride"), {}, numbers(dilation, rank, "dilation"), groups};
        UNDERTOW_CHECK(static_cast<int>(size.values.size()) == rank + 2, ValueError,
                       "Conv2DTranspose: input_size must have {} numbers, got {}", rank + 2, size.values.size());
        const List out(size.values.begin() + 2, size.values.end());
        o.pads = ops::window_pads(pad_mode, padding.values, out, extents(w), o.strides, o.dilations, "Conv2DTranspose");
        return ops::conv_transpose(dy, w, o, out);
      },
      "dy"_a, "w"_a, "input_size"_a, "stride"_a, "pad_mode"_a, "padding"_a, "dilation"_a, "groups"_a);
}

}  // namespace undertow::python
