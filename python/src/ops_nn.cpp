// SPDX-License-Identifier: Apache-2.0
// undertow.ops: linear algebra, convolution, pooling, neural network functions, losses, parameter writes.
#include "python/src/common.h"
#include "undertow/base/check.h"
#include "undertow/runtime/trace.h"

namespace undertow::python {
namespace {

using ops::Operand;

std::vector<std::int64_t> pair(const Ints& v, const char* what) {
  if (v.values.size() == 1) return {v.values[0], v.values[0]};
  UNDERTOW_CHECK(v.values.size() == 2, ValueError, "{} must be one or two integers, got {}", what, v.values.size());
  return v.values;
}

/// Explicit padding on the four sides from one, two or four numbers.
std::vector<std::int64_t> four(const Ints& v, const char* what) {
  if (v.values.size() == 1) return std::vector<std::int64_t>(4, v.values[0]);
  if (v.values.size() == 2) return {v.values[0], v.values[0], v.values[1], v.values[1]};
  UNDERTOW_CHECK(v.values.size() == 4, ValueError, "{} must be one, two or four integers, got {}", what,
                 v.values.size());
  return v.values;
}

/// Padding of pad_mode "same": what is needed for ceil(in / stride) outputs, the odd one at the bottom or right.
std::vector<std::int64_t> same_pads(const Tensor& x, std::span<const std::int64_t> kernel,
                                    std::span<const std::int64_t> stride, std::span<const std::int64_t> dilation) {
  std::vector<std::int64_t> pads;
  for (int d = 0; d < 2; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t n = x.shape(2 + d), out = (n + stride[i] - 1) / stride[i];
    const std::int64_t need = std::max<std::int64_t>(0, (out - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 - n);
    pads.push_back(need / 2);
    pads.push_back(need - need / 2);
  }
  return pads;
}

Tensor conv2d(const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias, const Ints& stride,
              const std::string& pad_mode, const Ints& padding, const Ints& dilation, std::int64_t groups) {
  UNDERTOW_CHECK(x.ndim() == 4 && w.ndim() == 4, ShapeError,
                 "conv2d: input and weight must have 4 dimensions, got shapes {} and {}", x.shape().str(),
                 w.shape().str());
  ops::ConvOptions o;
  o.strides = pair(stride, "conv2d: stride");
  o.dilations = pair(dilation, "conv2d: dilation");
  o.groups = groups;
  if (pad_mode == "same") {
    o.pads = same_pads(x, std::vector{w.shape(2), w.shape(3)}, o.strides, o.dilations);
  } else if (pad_mode == "pad") {
    o.pads = four(padding, "conv2d: padding");
  } else {
    UNDERTOW_CHECK(pad_mode == "valid", ValueError, "conv2d: pad_mode must be 'same', 'valid' or 'pad', got '{}'",
                   pad_mode);
  }
  const Tensor y = ops::conv2d(x, w, o);
  return bias ? ops::add(y, ops::reshape(*bias, {1, -1, 1, 1})) : y;
}

ops::PoolOptions pool_options(const Ints& kernel, const std::optional<Ints>& stride, const Ints& padding) {
  ops::PoolOptions o;
  o.kernel = pair(kernel, "kernel_size");
  o.strides = stride ? pair(*stride, "stride") : o.kernel;
  o.pads = four(padding, "padding");
  return o;
}

Tensor reduce(const Tensor& loss, const std::string& reduction) {
  if (reduction == "mean") return ops::reduce_mean(loss);
  if (reduction == "sum") return ops::reduce_sum(loss);
  UNDERTOW_CHECK(reduction == "none", ValueError, "reduction must be 'mean', 'sum' or 'none', got '{}'", reduction);
  return loss;
}

void need_labels(const Tensor& logits, const Tensor& target) {
  UNDERTOW_CHECK(logits.ndim() == 2, ShapeError, "cross_entropy: input must have shape (N, C), got {}",
                 logits.shape().str());
  (void)target;
}

Tensor cross_entropy(const Tensor& input, const Tensor& target, nb::handle weight, std::int64_t ignore_index,
                     const std::string& reduction, double smoothing) {
  need_labels(input, target);
  UNDERTOW_CHECK(weight.is_none(), ValueError, "cross_entropy: weight is not supported yet");
  UNDERTOW_CHECK(smoothing >= 0 && smoothing <= 1, ValueError,
                 "cross_entropy: label_smoothing must be in [0, 1], got {}", smoothing);
  const std::int64_t classes = input.shape(1);
  const auto smoothed = [&](const Tensor& p) {
    if (smoothing == 0) return p;
    return ops::add(ops::mul(p, 1 - smoothing), smoothing / static_cast<double>(classes));
  };
  if (is_floating(target.dtype())) return reduce(ops::cross_entropy_dense(input, smoothed(target)), reduction);
  const Tensor kept = ops::not_equal(target, ignore_index);
  const Tensor safe = ops::select(kept, target, std::int64_t{0});
  const Tensor rows = smoothing == 0
                          ? ops::cross_entropy_sparse(input, safe)
                          : ops::cross_entropy_dense(input, smoothed(ops::one_hot(safe, classes, 1, 0, input.dtype())));
  const Tensor loss = ops::select(kept, rows, 0.0);
  if (reduction != "mean") return reduce(loss, reduction);
  return ops::div(ops::reduce_sum(loss), ops::reduce_sum(ops::cast(kept, loss.dtype())));
}

Parameter parameter(nb::handle o, const char* op) {
  const Tensor* t = unwrap(o);
  UNDERTOW_CHECK(t && t->is_parameter(), TypeError, "{}: the first argument must be a Parameter, got {}", op,
                 type_name_of(o));
  return Parameter::of(*t);
}

template <typename F>
auto assigning(const char* op, F f) {
  return [op, f](nb::handle variable, const Operand& value) {
    const Parameter p = parameter(variable, op);
    const Tensor v = f(p, value);
    ops::assign(p, ops::cast(v, p.dtype()));
    return nb::borrow(variable);
  };
}

}  // namespace

void bind_ops_nn(nb::module_& m) {
  m.def(
      "matmul", [](const Tensor& a, const Tensor& b) { return ops::matmul(a, b); }, "input"_a, "other"_a,
      "Matrix product (..., m, k) x (..., k, n), batch dimensions broadcast.");
  for (const char* n : {"bmm", "mm"})
    m.def(
        n, [](const Tensor& a, const Tensor& b) { return ops::matmul(a, b); }, "input"_a, "mat2"_a, "Matrix product.");
  m.def("_matmul", &ops::matmul, "a"_a, "b"_a, "transpose_a"_a, "transpose_b"_a);
  m.def(
      "dense",
      [](const Tensor& x, const Tensor& w, const std::optional<Tensor>& b) {
        const Tensor y = ops::matmul(x, w, false, true);
        return b ? ops::add(y, *b) : y;
      },
      "input"_a, "weight"_a, "bias"_a.none() = nb::none(), "input weight^T + bias, with weight (out, in).");
  m.def("conv2d", &conv2d, "input"_a, "weight"_a, "bias"_a.none() = nb::none(), "stride"_a = 1, "pad_mode"_a = "valid",
        "padding"_a = 0, "dilation"_a = 1, "groups"_a = 1, "input (N, C, H, W), weight (O, C / groups, kh, kw).");
  m.def(
      "max_pool2d",
      [](const Tensor& x, const Ints& k, const std::optional<Ints>& s, const Ints& p) {
        return ops::max_pool2d(x, pool_options(k, s, p));
      },
      "x"_a, "kernel_size"_a, "stride"_a.none() = nb::none(), "padding"_a = 0,
      "Largest of each window of (N, C, H, W); stride defaults to the kernel. NaN wins.");
  m.def(
      "avg_pool2d",
      [](const Tensor& x, const Ints& k, const std::optional<Ints>& s, const Ints& p, bool ceil_mode, bool count) {
        UNDERTOW_CHECK(!ceil_mode, ValueError, "avg_pool2d: ceil_mode=True is not supported yet");
        ops::PoolOptions o = pool_options(k, s, p);
        o.count_include_pad = count;
        return ops::avg_pool2d(x, o);
      },
      "input_x"_a, "kernel_size"_a = 1, "stride"_a = 1, "padding"_a = 0, "ceil_mode"_a = false,
      "count_include_pad"_a = true, "Mean of each window of (N, C, H, W).");
  m.def(
      "softmax",
      [](const Tensor& x, std::int64_t axis, std::optional<DType> d) {
        return ops::softmax(d ? ops::cast(x, *d) : x, axis);
      },
      "input"_a, "axis"_a = -1, nb::kw_only(), "dtype"_a.none() = nb::none(), "exp(x) / sum(exp(x)) along an axis.");
  m.def(
      "log_softmax", [](const Tensor& x, std::int64_t axis) { return ops::log_softmax(x, axis); }, "logits"_a,
      "axis"_a = -1, "log(softmax(x)), without overflow.");
  m.def(
      "dropout",
      [](const Tensor& x, double p, bool training, nb::handle seed) {
        UNDERTOW_CHECK(seed.is_none(), ValueError, "dropout: a seed of its own is not supported; use set_seed");
        UNDERTOW_CHECK(p >= 0 && p < 1, ValueError, "dropout: p must be in [0, 1), got {}", p);
        return training ? ops::dropout(x, p) : x;
      },
      "input"_a, "p"_a = 0.5, "training"_a = true, "seed"_a.none() = nb::none(),
      "Zeroes each element with probability p and scales the rest by 1 / (1 - p).");
  m.def(
      "cross_entropy", &cross_entropy, "input"_a, "target"_a, "weight"_a.none() = nb::none(), "ignore_index"_a = -100,
      "reduction"_a = "mean", "label_smoothing"_a = 0.0,
      "Cross entropy of logits (N, C) with class ids (N,) of any integer type, or probabilities (N, C). A class out of "
      "range raises IndexError in every mode; rows with ignore_index do not count.");
  m.def(
      "mse_loss",
      [](const Tensor& x, const Tensor& y, const std::string& r) { return reduce(ops::square(ops::sub(x, y)), r); },
      "input"_a, "target"_a, "reduction"_a = "mean", "(input - target)^2, reduced.");
  m.def(
      "l1_loss",
      [](const Tensor& x, const Tensor& y, const std::string& r) { return reduce(ops::abs(ops::sub(x, y)), r); },
      "input"_a, "target"_a, "reduction"_a = "mean", "|input - target|, reduced.");
  m.def("_softmax_cross_entropy", [](const Tensor& x, const Tensor& y) { return ops::cross_entropy_dense(x, y); });
  m.def("_sparse_softmax_cross_entropy",
        [](const Tensor& x, const Tensor& y) { return ops::reduce_mean(ops::cross_entropy_sparse(x, y)); });
  m.def(
      "rand", [](const Ints& s) { return ops::random_uniform(Shape(s.values)); }, "size"_a,
      "Uniform float32 in [0, 1), keyed by the seed and the step.");

  m.def("assign",
        assigning("assign",
                  [](const Tensor&, const Operand& v) { return v.is_tensor() ? v.tensor() : v.as(DType::kFloat32); }),
        "variable"_a, "value"_a, "The Parameter has this value for every later read.");
  m.def("assign_add", assigning("assign_add", [](const Tensor& p, const Operand& v) { return ops::add(p, v); }),
        "variable"_a, "value"_a, "variable += value");
  m.def("assign_sub", assigning("assign_sub", [](const Tensor& p, const Operand& v) { return ops::sub(p, v); }),
        "variable"_a, "value"_a, "variable -= value");
  m.def(
      "depend", [](nb::handle value, nb::handle) { return nb::borrow(value); }, "value"_a.none(), "expr"_a.none(),
      "`value`: parameter writes keep the order of the program by themselves.");
  m.def("_tracing", [] { return runtime::current_trace() != nullptr; });
}

}  // namespace undertow::python
