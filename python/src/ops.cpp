// SPDX-License-Identifier: Apache-2.0
// undertow.ops: elementwise functions, creation, reductions and shapes, with MindSpore's argument names.
#include "python/src/common.h"
#include "undertow/base/check.h"

namespace undertow::python {
namespace {

using ops::Operand;

const nb::arg x_ = "input"_a;

struct Unary {
  const char* name;
  Tensor (*f)(const Tensor&);
  const char* doc;
};
constexpr Unary kUnary[] = {
    {"neg", &ops::neg, "-x"},
    {"negative", &ops::neg, "-x"},
    {"abs", &ops::abs, "|x|"},
    {"absolute", &ops::abs, "|x|"},
    {"exp", &ops::exp, "e^x; integers become float32."},
    {"expm1", &ops::expm1, "e^x - 1; integers become float32."},
    {"log", &ops::log, "Natural logarithm; integers become float32."},
    {"log1p", &ops::log1p, "log(1 + x); integers become float32."},
    {"sqrt", &ops::sqrt, "Square root; integers become float32."},
    {"rsqrt", &ops::rsqrt, "1 / sqrt(x); integers become float32."},
    {"square", &ops::square, "x * x"},
    {"reciprocal", &ops::reciprocal, "1 / x; integers become float32."},
    {"sin", &ops::sin, "Sine; integers become float32."},
    {"cos", &ops::cos, "Cosine; integers become float32."},
    {"tanh", &ops::tanh, "Hyperbolic tangent; integers become float32."},
    {"erf", &ops::erf, "Error function; integers become float32."},
    {"sigmoid", &ops::sigmoid, "1 / (1 + e^-x); integers become float32."},
    {"relu", &ops::relu, "max(x, 0); NaN stays NaN."},
    {"floor", &ops::floor, "Largest integer not above x, in x's dtype."},
    {"ceil", &ops::ceil, "Smallest integer not below x, in x's dtype."},
    {"round", &ops::round, "Nearest integer, half to even, in x's dtype."},
    {"trunc", &ops::trunc, "Toward zero, in x's dtype."},
    {"sign", &ops::sign, "-1, 0 or 1; NaN stays NaN."},
    {"logical_not", &ops::logical_not, "x == 0, as bool."},
    {"isnan", &ops::isnan, "Whether each element is NaN, as bool."},
    {"isinf", &ops::isinf, "Whether each element is infinite, as bool."},
    {"isfinite", &ops::isfinite, "Whether each element is neither infinite nor NaN, as bool."},
    {"copy", &ops::copy, "A tensor with the same values."},
    {"deepcopy", &ops::copy, "A tensor with the same values."},
    {"identity", &ops::copy, "A tensor with the same values."},
    {"stop_gradient", &ops::stop_gradient, "x, through which no gradient flows."},
};

struct Binary {
  const char* name;
  Tensor (*f)(const Operand&, const Operand&);
  const char* doc;
};
constexpr const char* kCompare = "Elementwise comparison with broadcasting, as bool.";
constexpr const char* kLogical = "Elementwise on truth values with broadcasting, as bool.";
constexpr Binary kBinary[] = {
    {"add", &ops::add, "x + y with broadcasting and promotion."},
    {"sub", &ops::sub, "x - y with broadcasting and promotion."},
    {"subtract", &ops::sub, "x - y with broadcasting and promotion."},
    {"mul", &ops::mul, "x * y with broadcasting and promotion."},
    {"multiply", &ops::mul, "x * y with broadcasting and promotion."},
    {"div", &ops::div, "x / y; integers become float32."},
    {"divide", &ops::div, "x / y; integers become float32."},
    {"true_divide", &ops::div, "x / y; integers become float32."},
    {"floor_div", &ops::floor_div, "floor(x / y)"},
    {"floor_divide", &ops::floor_div, "floor(x / y)"},
    {"floor_mod", &ops::floor_mod, "x - floor(x / y) * y: the sign of the divisor."},
    {"remainder", &ops::floor_mod, "x - floor(x / y) * y: the sign of the divisor."},
    {"pow", &ops::pow, "x to the power of y."},
    {"maximum", &ops::maximum, "The larger; NaN wins."},
    {"minimum", &ops::minimum, "The smaller; NaN wins."},
    {"atan2", &ops::atan2, "The angle whose tangent is input / other, by quadrant."},
    {"equal", &ops::equal, kCompare},
    {"eq", &ops::equal, kCompare},
    {"not_equal", &ops::not_equal, kCompare},
    {"ne", &ops::not_equal, kCompare},
    {"less", &ops::less, kCompare},
    {"lt", &ops::less, kCompare},
    {"less_equal", &ops::less_equal, kCompare},
    {"le", &ops::less_equal, kCompare},
    {"greater", &ops::greater, kCompare},
    {"gt", &ops::greater, kCompare},
    {"greater_equal", &ops::greater_equal, kCompare},
    {"ge", &ops::greater_equal, kCompare},
    {"logical_and", &ops::logical_and, kLogical},
    {"logical_or", &ops::logical_or, kLogical},
    {"logical_xor", &ops::logical_xor, kLogical},
};

void bind_creation(nb::module_& m) {
  const auto full = [](const Shape& shape, double value, std::optional<DType> d) {
    return ops::full(shape, value, d.value_or(DType::kFloat32));
  };
  m.def(
      "full",
      [full](const Shape& s, nb::handle value, std::optional<DType> d) {
        // Without a dtype the value decides, as in Tensor(value).
        return full(s, nb::cast<double>(nb::float_(value)), d ? d : std::optional(to_tensor(value).dtype()));
      },
      "size"_a, "fill_value"_a, nb::kw_only(), "dtype"_a.none() = nb::none(), "A tensor of one value.");
  m.def(
      "zeros", [full](const Shape& s, std::optional<DType> d) { return full(s, 0, d); }, "size"_a,
      "dtype"_a.none() = nb::none(), "Zeros, float32 unless told.");
  m.def(
      "ones", [full](const Shape& s, std::optional<DType> d) { return full(s, 1, d); }, "size"_a,
      "dtype"_a.none() = nb::none(), "Ones, float32 unless told.");
  m.def(
      "zeros_like",
      [](const Tensor& x, std::optional<DType> d) { return ops::cast(ops::zeros_like(x), d.value_or(x.dtype())); }, x_,
      nb::kw_only(), "dtype"_a.none() = nb::none(), "Zeros in the input's shape.");
  m.def(
      "ones_like",
      [](const Tensor& x, std::optional<DType> d) { return ops::cast(ops::ones_like(x), d.value_or(x.dtype())); }, x_,
      nb::kw_only(), "dtype"_a.none() = nb::none(), "Ones in the input's shape.");
  m.def(
      "full_like",
      [](const Tensor& x, double v, std::optional<DType> d) { return ops::full(x.shape(), v, d.value_or(x.dtype())); },
      x_, "fill_value"_a, nb::kw_only(), "dtype"_a.none() = nb::none(), "One value in the input's shape.");
  m.def(
      "arange",
      [](std::int64_t start, std::optional<std::int64_t> end, std::int64_t step, std::optional<DType> d) {
        if (!end) end = start, start = 0;
        UNDERTOW_CHECK(step != 0, ValueError, "arange: step must not be 0");
        const std::int64_t span = *end - start,
                           n = std::max<std::int64_t>(0, (span + step - (step > 0 ? 1 : -1)) / step);
        const DType dtype = d.value_or(DType::kInt64);
        Tensor t = ops::arange(n, dtype);
        if (step != 1) t = ops::mul(t, step);
        return start == 0 ? t : ops::add(t, start);
      },
      "start"_a = 0, "end"_a.none() = nb::none(), "step"_a = 1, nb::kw_only(), "dtype"_a.none() = nb::none(),
      "Integers from start (0) up to, not including, end; int64 unless told.");
}

template <typename F>
void reduction(nb::module_& m, const char* name, F f, const char* doc) {
  m.def(name, f, x_, "axis"_a.none() = nb::none(), "keep_dims"_a = false, doc);
  m.def(name, f, x_, "axis"_a.none() = nb::none(), "keepdims"_a = false);
  m.def(name, f, x_, "dim"_a.none() = nb::none(), "keepdim"_a = false);
}

using Extremum = Tensor (*)(const Tensor&, ops::Axes, bool);
using Position = Tensor (*)(const Tensor&, std::int64_t, bool);

/// ops.max and ops.min: values and positions along an axis; without one, over everything.
nb::object with_positions(Extremum value, Position position, const Tensor& x, std::optional<std::int64_t> axis,
                          bool keep) {
  if (!axis) return nb::make_tuple(value(x, {}, false), position(ops::reshape(x, {-1}), 0, false));
  return nb::make_tuple(value(x, {*axis}, keep), position(x, *axis, keep));
}

void bind_reductions(nb::module_& m) {
  m.def(
      "sum",
      [](const Tensor& x, const AxesArg& a, bool k, std::optional<DType> d) {
        return ops::reduce_sum(d ? ops::cast(x, *d) : x, a.values, k);
      },
      x_, "dim"_a.none() = nb::none(), "keepdim"_a = false, nb::kw_only(), "dtype"_a.none() = nb::none(),
      "Sum over the given axes (all of them without any).");
  const auto sum = [](const Tensor& x, const AxesArg& a, bool k) { return ops::reduce_sum(x, a.values, k); };
  m.def("sum", sum, x_, "axis"_a.none() = nb::none(), "keep_dims"_a = false);
  reduction(m, "reduce_sum", sum, "Sum over the given axes (all of them without any).");
  const auto mean = [](const Tensor& x, const AxesArg& a, bool k) { return ops::reduce_mean(x, a.values, k); };
  reduction(m, "mean", mean, "Mean over the given axes; NaN over none.");
  reduction(m, "reduce_mean", mean, "Mean over the given axes; NaN over none.");
  const auto prod = [](const Tensor& x, const AxesArg& a, bool k) { return ops::reduce_prod(x, a.values, k); };
  reduction(m, "prod", prod, "Product over the given axes.");
  const auto top = [](const Tensor& x, const AxesArg& a, bool k) { return ops::reduce_max(x, a.values, k); };
  const auto low = [](const Tensor& x, const AxesArg& a, bool k) { return ops::reduce_min(x, a.values, k); };
  for (const char* n : {"amax", "reduce_max"}) reduction(m, n, top, "Largest element. Raises ValueError over none.");
  for (const char* n : {"amin", "reduce_min"}) reduction(m, n, low, "Smallest element. Raises ValueError over none.");
  reduction(
      m, "all", [](const Tensor& x, const AxesArg& a, bool k) { return ops::reduce_all(x, a.values, k); },
      "Whether all elements are true.");
  reduction(
      m, "any", [](const Tensor& x, const AxesArg& a, bool k) { return ops::reduce_any(x, a.values, k); },
      "Whether any element is true.");
  m.def(
      "max",
      [](const Tensor& x, std::optional<std::int64_t> a, bool k) {
        return with_positions(&ops::reduce_max, &ops::argmax, x, a, k);
      },
      x_, "axis"_a.none() = nb::none(), "keepdims"_a = false,
      "(values, positions) of the largest elements along an axis.");
  m.def(
      "min",
      [](const Tensor& x, std::optional<std::int64_t> a, bool k) {
        return with_positions(&ops::reduce_min, &ops::argmin, x, a, k);
      },
      x_, "axis"_a.none() = nb::none(), "keepdims"_a = false,
      "(values, positions) of the smallest elements along an axis.");
  const auto var = [](const Tensor& x, const AxesArg& a, int ddof, bool k) {
    return ops::reduce_var(x, a.values, k, ddof);
  };
  m.def("var", var, x_, "axis"_a.none() = nb::none(), "ddof"_a = 0, "keepdims"_a = false, "Variance with n - ddof.");
  m.def(
      "std",
      [](const Tensor& x, const AxesArg& a, int ddof, bool k) {
        return ops::sqrt(ops::reduce_var(x, a.values, k, ddof));
      },
      x_, "axis"_a.none() = nb::none(), "ddof"_a = 0, "keepdims"_a = false, "Standard deviation with n - ddof.");
  const auto arg = [](Position f) {
    return [f](const Tensor& x, std::optional<std::int64_t> a, bool k) {
      return a ? f(x, *a, k) : f(ops::reshape(x, {-1}), 0, false);
    };
  };
  for (const auto& [name, f] : {std::pair{"argmax", &ops::argmax}, std::pair{"argmin", &ops::argmin}}) {
    m.def(name, arg(f), x_, "dim"_a.none() = nb::none(), "keepdim"_a = false,
          "Position of the extreme element along an axis (of the flattened tensor without one), int64; NaN wins.");
    m.def(name, arg(f), x_, "axis"_a.none() = nb::none(), "keepdims"_a = false);
  }
}

std::vector<Tensor> tensors(nb::handle items, const char* what) {
  std::vector<Tensor> out;
  for (nb::handle h : items) {
    const Tensor* t = unwrap(h);
    UNDERTOW_CHECK(t, TypeError, "{}: item {} is not a Tensor but {}", what, out.size(), type_name_of(h));
    out.push_back(*t);
  }
  return out;
}

nb::object split(const Tensor& x, const Ints& size, std::int64_t axis) {
  const int a = normalize_axis(axis, x.ndim(), "split: axis");
  std::vector<std::int64_t> sizes = size.values;
  const std::int64_t total = x.shape(a);
  if (size.single) {
    const std::int64_t n = sizes[0];
    UNDERTOW_CHECK(n > 0, ValueError, "split: the size of a piece must be positive, got {}", n);
    sizes.assign(static_cast<std::size_t>(total / n), n);
    if (total % n) sizes.push_back(total % n);
  }
  std::int64_t at = 0;
  for (const std::int64_t n : sizes) at += n;
  UNDERTOW_CHECK(at == total, ValueError, "split: pieces of {} do not make up dimension {} of shape {}",
                 fmt::join(sizes, " + "), a, x.shape().str());
  nb::list pieces;
  at = 0;
  for (const std::int64_t n : sizes) {
    std::vector<std::int64_t> begin(static_cast<std::size_t>(x.ndim()), 0);
    begin[static_cast<std::size_t>(a)] = at;
    Shape shape = x.shape();
    shape[a] = n;
    pieces.append(wrap(ops::slice(x, begin, std::vector<std::int64_t>(begin.size(), 1), shape)));
    at += n;
  }
  return nb::tuple(pieces);
}

void bind_shapes(nb::module_& m) {
  m.def(
      "reshape", [](const Tensor& x, const Ints& s) { return ops::reshape(x, s.values); }, x_, "shape"_a,
      "The elements in another shape; one extent may be -1.");
  m.def(
      "flatten",
      [](const Tensor& x, const std::string& order, std::int64_t start, std::int64_t end) {
        UNDERTOW_CHECK(order == "C", ValueError, "flatten: order must be 'C', got '{}'", order);
        return ops::flatten(x, start, end);
      },
      x_, "order"_a = "C", nb::kw_only(), "start_dim"_a = 1, "end_dim"_a = -1,
      "Joins dimensions start_dim to end_dim.");
  m.def(
      "transpose", [](const Tensor& x, const Ints& p) { return ops::transpose(x, p.values); }, x_, "input_perm"_a,
      "Dimensions in another order.");
  m.def("permute", [](const Tensor& x, const Ints& p) { return ops::transpose(x, p.values); }, x_, "axis"_a);
  m.def("t", [](const Tensor& x) { return ops::transpose(x); }, x_);
  for (const char* n : {"swapaxes", "swapdims"})
    m.def(n, &ops::swapaxes, x_, "axis0"_a, "axis1"_a, "Exchanges two dimensions.");
  m.def("expand_dims", &ops::expand_dims, x_, "axis"_a, "A new dimension of extent 1 before `axis`.");
  m.def("unsqueeze", &ops::expand_dims, x_, "dim"_a, "A new dimension of extent 1 before `dim`.");
  m.def(
      "squeeze", [](const Tensor& x, const AxesArg& a) { return ops::squeeze(x, a.values); }, x_,
      "axis"_a.none() = nb::none(), "Without the given dimensions of extent 1 (all of them without any).");
  m.def(
      "broadcast_to",
      [](const Tensor& x, const Ints& s) {
        std::vector<std::int64_t> shape = s.values;
        const std::size_t lead = shape.size() - std::min(shape.size(), x.shape().size());
        for (std::size_t i = lead; i < shape.size(); ++i)
          if (shape[i] == -1) shape[i] = x.shape(static_cast<int>(i - lead));
        return ops::broadcast_to(x, Shape(shape));
      },
      x_, "shape"_a, "Repeats along dimensions of extent 1; -1 keeps an extent.");
  for (const char* n : {"concat", "cat"})
    m.def(
        n, [](nb::handle xs, std::int64_t axis) { return ops::concat(tensors(xs, "concat"), axis); }, "tensors"_a,
        "axis"_a = 0, "One after the other along an axis.");
  m.def(
      "stack", [](nb::handle xs, std::int64_t axis) { return ops::stack(tensors(xs, "stack"), axis); }, "tensors"_a,
      "axis"_a = 0, "Side by side along a new axis.");
  m.def("split", &split, "tensor"_a, "split_size_or_sections"_a, "axis"_a = 0,
        "Pieces of the given size (the last may be smaller), or of the given sizes.");
  m.def(
      "chunk",
      [](const Tensor& x, std::int64_t chunks, std::int64_t axis) {
        UNDERTOW_CHECK(chunks > 0, ValueError, "chunk: the number of chunks must be positive, got {}", chunks);
        const std::int64_t n = x.shape(normalize_axis(axis, x.ndim(), "chunk: axis"));
        return split(x, {{std::max<std::int64_t>(1, (n + chunks - 1) / chunks)}, true}, axis);
      },
      x_, "chunks"_a, "axis"_a = 0, "At most that many pieces of equal size (the last may be smaller).");
  m.def(
      "gather",
      [](const Tensor& x, const Tensor& i, std::int64_t axis, std::int64_t batch_dims) {
        UNDERTOW_CHECK(batch_dims == 0, ValueError, "gather: batch_dims must be 0, got {}", batch_dims);
        return ops::gather(x, i, axis);
      },
      "input_params"_a, "input_indices"_a, "axis"_a, "batch_dims"_a = 0,
      "Slices of input_params at the indices along an axis; out of range raises IndexError in every mode.");
  m.def(
      "index_select", [](const Tensor& x, std::int64_t axis, const Tensor& i) { return ops::gather(x, i, axis); }, x_,
      "axis"_a, "index"_a);
  m.def(
      "one_hot",
      [](const Tensor& i, std::int64_t depth, nb::handle on, nb::handle off, std::int64_t axis) {
        UNDERTOW_CHECK(axis == -1, ValueError, "one_hot: axis must be -1, got {}", axis);
        const Tensor* t = unwrap(on);
        const DType d = t ? t->dtype() : DType::kInt64;
        return ops::one_hot(i, depth, nb::cast<double>(nb::float_(on)), nb::cast<double>(nb::float_(off)), d);
      },
      "indices"_a, "depth"_a, "on_value"_a = 1, "off_value"_a = 0, "axis"_a = -1,
      "A last dimension of `depth` with on_value at the index; the dtype is on_value's (a number: int64).");
  m.def(
      "tile",
      [](const Tensor& x, const Ints& dims) {
        // Each dimension becomes (repeats, extent), broadcast, and joined again.
        std::vector<std::int64_t> reps = dims.values, wide, target, joined;
        while (reps.size() < x.shape().size()) reps.insert(reps.begin(), 1);
        const std::size_t lead = reps.size() - x.shape().size();
        for (std::size_t i = 0; i < reps.size(); ++i) {
          const std::int64_t n = i < lead ? 1 : x.shape(static_cast<int>(i - lead));
          if (reps[i] != 1) wide.push_back(1), target.push_back(reps[i]);
          wide.push_back(n);
          target.push_back(n);
          joined.push_back(reps[i] * n);
        }
        return ops::reshape(ops::broadcast_to(ops::reshape(x, wide), Shape(target)), joined);
      },
      x_, "dims"_a, "The tensor repeated dims[i] times along each dimension.");
}

}  // namespace

void bind_ops(nb::module_& m) {
  for (const Unary& u : kUnary) m.def(u.name, u.f, x_, u.doc);
  for (const Binary& b : kBinary) m.def(b.name, b.f, x_, "other"_a, b.doc);
  for (const char* n : {"where", "select"})
    m.def(n, &ops::select, "condition"_a, x_, "other"_a, "condition ? input : other, with broadcasting.");
  m.def("cast", &ops::cast, x_, "dtype"_a, "In another dtype; float to integer truncates.");
  for (const char* n : {"clip", "clamp"})
    m.def(n, &ops::clip, x_, "min"_a.none() = nb::none(), "max"_a.none() = nb::none(),
          "Limited to [min, max]; NaN stays.");
  m.def("clip_by_value", &ops::clip, "x"_a, "clip_value_min"_a.none() = nb::none(),
        "clip_value_max"_a.none() = nb::none(), "Limited to [min, max]; NaN stays.");
  m.def(
      "masked_fill",
      [](const Tensor& x, const Tensor& mask, const Operand& v) { return ops::select(mask, v.as(x.dtype()), x); },
      "input_x"_a, "mask"_a, "value"_a, "`value` where the mask is true.");
  bind_creation(m);
  bind_reductions(m);
  bind_shapes(m);
}

}  // namespace undertow::python
