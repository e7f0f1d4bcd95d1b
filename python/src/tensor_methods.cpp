// SPDX-License-Identifier: Apache-2.0
// Operators and methods of Tensor. Most methods are the function of the same name in undertow.ops, with the tensor as
// its first argument; what differs from its function stands below.
#include <sstream>

#include "python/src/ops_bind.h"
#include "python/src/tensor_index.h"
#include "undertow/ops/arrange.h"
#include "undertow/ops/fill.h"
#include "undertow/ops/math.h"
#include "undertow/ops/scatter.h"
#include "undertow/ops/sort.h"
#include "undertow/ops/statistics.h"

namespace undertow::python {
namespace {

using Class = nb::class_<TensorObject>;

/// Functions of undertow.ops that are methods as they are.
constexpr const char* kMethods =
    "abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr allclose amax amin aminmax approximate_equal "
    "arccos arccosh arcsin arcsinh arctan arctan2 arctanh argsort argwhere asin asinh atan atan2 atanh baddbmm "
    "bernoulli bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm "
    "broadcast_to ceil chunk clamp clip clone copy copysign cos cosh count_nonzero cross cummax cummin cumprod cumsum "
    "deg2rad diag diagflat diagonal diff digamma div divide dot dsplit eq erf erfc erfinv exp exp2 expand_as "
    "expand_dims expm1 fill_diagonal flip fliplr flipud float_power floor floor_divide fmax fmin fmod frac "
    "gather_elements "
    "gather_nd ge ger greater greater_equal gt heaviside histc hsplit hypot index_fill index_select inplace_update "
    "inner invert inv "
    "isclose isfinite isinf isnan isneginf isposinf kthvalue ldexp le lerp less less_equal lgamma log log10 log1p log2 "
    "log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp lt "
    "masked_fill masked_select matmul matrix_power maximum median minimum mm moveaxis movedim msort mul multinomial "
    "multiply nan_to_num nanmean nanmedian nanquantile nansum narrow ne neg negative nonzero norm not_equal outer "
    "isin positive pow ptp quantile rad2deg random_categorical ravel reciprocal relu remainder renorm "
    "repeat_interleave reshape_as reverse "
    "reverse_sequence roll rot90 round rsqrt scatter scatter_div scatter_max scatter_min scatter_mul scatter_sub "
    "select_scatter sgn sigmoid sign signbit sin sinc sinh softmax sort split sqrt square squeeze std sub subtract sum "
    "prod mean all any argmax argmin swapaxes swapdims t take tan tanh tensor_split tile top_k topk trace tril triu "
    "true_divide trunc type_as unbind unique_consecutive unsorted_segment_max unsorted_segment_min "
    "unsorted_segment_prod unsorted_segment_sum unsqueeze var view_as vsplit xdivy xlogy";

void bind_named(nb::module_& functions, Class& c) {
  std::istringstream names(kMethods);
  for (std::string name; names >> name;) {
    const nb::object f = functions.attr(name.c_str());
    // Python's own wrapper that passes the instance on as the first argument.
    c.attr(name.c_str()) = nb::steal(PyInstanceMethod_New(f.ptr()));
  }
}

/// Functions that are methods with a '_' behind them too: the tensor takes their result.
constexpr const char* kInPlace =
    "abs add addmm ceil clamp clip div exp floor floor_divide index_fill log masked_fill mul neg remainder round "
    "scatter "
    "sigmoid sign sqrt sub tanh tril triu";

void bind_in_place(nb::module_& functions, Class& c) {
  const auto define = [&c](const std::string& name, nb::object f) {
    c.def((name + "_").c_str(),
          [f = f.ptr()](nb::handle self, const nb::args& args, const nb::kwargs& kwargs) {
            const Tensor x = *unwrap(self);
            const auto y = nb::cast<Tensor>(nb::handle(f)(self, *args, **kwargs));
            UNDERTOW_CHECK(y.shape() == x.shape(), ShapeError,
                           "a result of shape {} cannot be written into a tensor of shape {}", y.shape().str(),
                           x.shape().str());
            write(self, ops::cast(y, x.dtype()));
            return nb::borrow(self);
          },
          "args"_a, "kwargs"_a, "In place; within a trace the object holds the new tensor.");
  };
  std::istringstream names(kInPlace);
  for (std::string name; names >> name;) define(name, functions.attr(name.c_str()));  // the module keeps it alive
  const auto filled = [](nb::handle self, const Tensor& y) {
    write(self, y);
    return nb::borrow(self);
  };
  c.def("zero_", [filled](nb::handle self) { return filled(self, ops::zeros_like(*unwrap(self))); });
  c.def(
      "fill_",
      [filled](nb::handle self, const Operand& v) {
        const Tensor x = *unwrap(self);
        return filled(self, ops::full(x.shape(), v, x.dtype()));
      },
      "value"_a);
  c.def(
      "copy_",
      [filled](nb::handle self, const Tensor& src) {
        const Tensor x = *unwrap(self);
        return filled(self, ops::copy(ops::broadcast_to(ops::cast(src, x.dtype()), x.shape())));
      },
      "src"_a);
}

template <typename F>
void binary(Class& c, const char* op, const char* reflected, F f) {
  c.def(op, [f](const Tensor& x, const Operand& y) { return f(x, y); }, nb::is_operator());
  if (reflected) c.def(reflected, [f](const Tensor& x, const Operand& y) { return f(y, x); }, nb::is_operator());
}

/// x.f(a, b) and x.f((a, b)).
std::vector<std::int64_t> flat_ints(const nb::args& args) {
  nb::handle all = args;
  if (args.size() == 1) {
    const nb::handle only = args[0];
    if (!PyIndex_Check(only.ptr()) || (unwrap(only) && unwrap(only)->ndim() == 1)) all = only;
  }
  Ints ints;
  if (!nb::try_cast(all, ints))
    throw TypeError(fmt::format("expected ints or a sequence of ints, got {}", repr_of(all)));
  return ints.values;
}

/// Bits of integers, truth values of bools (and of floats, which have no bits to speak of).
template <typename Bits, typename Logic>
auto bits_or_logic(Bits bits, Logic logic) {
  const auto is_logical = [](const Operand& o) { return o.is_tensor() && !is_integral(o.tensor().dtype()); };
  return [=](const Operand& x, const Operand& y) { return is_logical(x) || is_logical(y) ? logic(x, y) : bits(x, y); };
}

void bind_operators(Class& c) {
  binary(c, "__add__", "__radd__", &ops::add);
  binary(c, "__sub__", "__rsub__", &ops::sub);
  binary(c, "__mul__", "__rmul__", &ops::mul);
  binary(c, "__truediv__", "__rtruediv__", [](const Operand& x, const Operand& y) { return ops::div(x, y); });
  binary(c, "__floordiv__", "__rfloordiv__", &ops::floor_div);
  binary(c, "__mod__", "__rmod__", &ops::floor_mod);
  binary(c, "__pow__", "__rpow__", &ops::pow);
  binary(c, "__eq__", nullptr, &ops::equal);
  binary(c, "__ne__", nullptr, &ops::not_equal);
  binary(c, "__lt__", nullptr, &ops::less);
  binary(c, "__le__", nullptr, &ops::less_equal);
  binary(c, "__gt__", nullptr, &ops::greater);
  binary(c, "__ge__", nullptr, &ops::greater_equal);
  binary(c, "__and__", "__rand__", bits_or_logic(&ops::bitwise_and, &ops::logical_and));
  binary(c, "__or__", "__ror__", bits_or_logic(&ops::bitwise_or, &ops::logical_or));
  binary(c, "__xor__", "__rxor__", bits_or_logic(&ops::bitwise_xor, &ops::logical_xor));
  binary(c, "__lshift__", "__rlshift__", &ops::bitwise_left_shift);
  binary(c, "__rshift__", "__rrshift__", &ops::bitwise_right_shift);
  const auto matmul = [](const Operand& x, const Operand& y) {
    UNDERTOW_CHECK(x.is_tensor() && y.is_tensor(), TypeError, "@ needs two tensors");
    return ops::matmul(x.tensor(), y.tensor());
  };
  binary(c, "__matmul__", "__rmatmul__", matmul);
  c.def("__neg__", &ops::neg).def("__pos__", [](nb::handle self) { return nb::borrow(self); });
  c.def("__abs__", &ops::abs);
  c.def("__invert__", &ops::logical_not);  // of integers too, as MindSpore
}

using Extremum = Tensor (*)(const Tensor&, ops::Axes, bool);
using Position = Tensor (*)(const Tensor&, std::int64_t, bool);

/// max and min: an axis without its name, or as `dim`, gives positions too; `axis` gives values, as NumPy.
void bind_extremum(Class& c, const char* name, Extremum value, Position position) {
  const auto both = [value, position](const Tensor& x, std::int64_t axis, bool keep) {
    return nb::make_tuple(value(x, {axis}, keep), position(x, axis, keep));
  };
  c.def(name, both, "dim"_a, "keepdim"_a = false, "(values, positions) of the extreme elements along a dimension.");
  for (const char* keep : {"keepdims", "keep_dims"})
    c.def(
        name,
        [=](const Tensor& x, const AxesArg& a, bool k, nb::handle initial, nb::handle where, bool positions) {
          Tensor t = x;
          if (!initial.is_none() || !where.is_none()) {
            Operand start(std::int64_t{0});
            UNDERTOW_CHECK(nb::try_cast(initial, start), TypeError, "{}: initial must be a number, got {}", name,
                           type_name_of(initial));
            if (const Tensor* mask = unwrap(where)) t = ops::select(*mask, t, start);
            t = value == Extremum(&ops::reduce_max) ? ops::maximum(t, start) : ops::minimum(t, start);
          }
          if (!positions) return wrap(value(t, a.values, k));
          UNDERTOW_CHECK(a.values.size() <= 1, ValueError, "{}: return_indices needs one axis", name);
          if (a.values.empty())
            return nb::object(nb::make_tuple(value(t, {}, false), position(ops::reshape(t, {-1}), 0, false)));
          return nb::object(both(t, a.values[0], k));
        },
        none_arg("axis"), nb::arg(keep) = false, nb::kw_only(), none_arg("initial"), none_arg("where"),
        "return_indices"_a = false, "The extreme elements over axes.");
  c.def(
      name,
      [value, name](const Tensor& x, const AxesArg& a, nb::handle out, bool keep) {
        UNDERTOW_CHECK(out.is_none(), TypeError, "{}: a Tensor's method takes no 'out'", name);
        return value(x, a.values, keep);
      },
      none_arg("axis"), none_arg("out"), "keepdims"_a = false);
}

void bind_shapes_of(Class& c) {
  c.def_prop_ro("T", [](const Tensor& x) { return ops::transpose(x); });
  c.def_prop_ro("mT", [](const Tensor& x) { return ops::swapaxes(x, -1, -2); });
  c.def_prop_ro("H", [](const Tensor& x) {
    UNDERTOW_CHECK(x.ndim() == 2, ValueError, "Tensor.H is defined for 2 dimensions, got shape {}", x.shape().str());
    return ops::transpose(x);
  });
  for (const char* n : {"reshape", "view"})
    c.def(n, [](const Tensor& x, const nb::args& s) { return ops::reshape(x, flat_ints(s)); }, "shape"_a);
  c.def(
      "transpose",
      [](const Tensor& x, const nb::args& axes) {
        if (PyTuple_GET_SIZE(axes.ptr()) == 0 || nb::handle(axes[0]).is_none()) return ops::transpose(x);
        const auto order = flat_ints(axes);
        // Two axes of more are exchanged.
        if (order.size() == 2 && x.ndim() != 2) return ops::swapaxes(x, order[0], order[1]);
        return ops::transpose(x, order);
      },
      "axes"_a);
  c.def("transpose", &ops::swapaxes, "dim0"_a, "dim1"_a);
  c.def("permute", [](const Tensor& x, const nb::args& axes) { return ops::transpose(x, flat_ints(axes)); }, "axes"_a);
  c.def("expand", [](const Tensor& x, const nb::args& size) { return ops::expand(x, flat_ints(size)); }, "size"_a);
  c.def(
      "flatten",
      [](const Tensor& x, const std::string& order, std::int64_t start, std::int64_t end) {
        UNDERTOW_CHECK(order == "C" || order == "F", ValueError, "flatten: order must be 'C' or 'F', got '{}'", order);
        return ops::flatten(order == "F" ? ops::transpose(x) : x, start, end);
      },
      "order"_a = "C", nb::kw_only(), "start_dim"_a = 0, "end_dim"_a = -1);
  c.def(
      "flatten", [](const Tensor& x, std::int64_t s, std::int64_t e) { return ops::flatten(x, s, e); }, "start_dim"_a,
      "end_dim"_a = -1);
  c.def(
      "repeat",
      [](const Tensor& x, const Ints& repeats, std::optional<std::int64_t> axis) {
        const Tensor t = axis ? x : ops::reshape(x, {-1});
        const std::int64_t a = axis.value_or(0);
        return repeats.single ? ops::repeat_interleave(t, repeats.values[0], a)
                              : ops::repeat_interleave(t, repeats.values, a);
      },
      "repeats"_a, none_arg("axis"), "NumPy's repeat: each element several times in a row.");
  c.def(
      "resize",
      [](const Tensor& x, const nb::args& size) {
        const Shape s(flat_ints(size));
        Tensor flat = ops::reshape(x, {-1});
        if (s.numel() > flat.size()) flat = ops::pad(flat, {0}, {s.numel() - flat.size()});
        return ops::reshape(ops::narrow(flat, 0, 0, s.numel()), s.to_vector());
      },
      "new_shape"_a, "The elements in another shape, cut off or filled up with zeros.");
  c.def(
      "stride",
      [](const Tensor& x, std::optional<std::int64_t> dim) -> nb::object {
        const auto dense = contiguous_strides(x.shape());
        if (dim) return nb::int_(dense[static_cast<std::size_t>(normalize_axis(*dim, x.ndim(), "stride"))]);
        nb::list out;
        for (const std::int64_t s : dense) out.append(s);
        return nb::tuple(out);
      },
      none_arg("dim"));
}

void bind_values_of(Class& c) {
  c.def("astype", [](const Tensor& x, DType d, bool) { return ops::cast(x, d); }, "dtype"_a, "copy"_a = true);
  c.def("to", [](const Tensor& x, DType d) { return ops::cast(x, d); }, "dtype"_a);
  c.def(
      "type",
      [](const Tensor& x, std::optional<DType> d) -> nb::object {
        if (!d) return nb::cast(std::string(name_of(x.dtype())));
        return wrap(ops::cast(x, *d));
      },
      none_arg("dtype"));
  const std::pair<const char*, DType> casts[] = {
      {"float", DType::kFloat32}, {"half", DType::kFloat16},      {"int", DType::kInt32},
      {"long", DType::kInt64},    {"short", DType::kInt16},       {"byte", DType::kUInt8},
      {"bool", DType::kBool},     {"bfloat16", DType::kBFloat16}, {"double", DType::kFloat64}};
  for (const auto& [name, d] : casts) c.def(name, [d = d](const Tensor& x) { return ops::cast(x, d); });
  for (const char* n : {"fill", "fills"})
    c.def(
        n, [](const Tensor& x, const Operand& v) { return ops::full(x.shape(), v, x.dtype()); }, "value"_a,
        "A tensor of one value in this one's shape and dtype.");
  c.def(
      "where", [](const Tensor& x, const Tensor& cond, const Operand& y) { return ops::select(cond, x, y); },
      "condition"_a, "y"_a);
  c.def(
      "select", [](const Tensor& x, const Tensor& cond, const Operand& y) { return ops::select(cond, x, y); },
      "condition"_a, "y"_a);
  c.def("select", &ops::select_at, "dim"_a, "index"_a, "One slice of a dimension, without it.");
  c.def(
      "gather", [](const Tensor& x, const Tensor& i, std::int64_t a) { return ops::gather(x, i, a); },
      "input_indices"_a, "axis"_a, "Slices along an axis.");
  c.def(
      "gather", [](const Tensor& x, std::int64_t d, const Tensor& i) { return ops::gather_elements(x, i, d); }, "dim"_a,
      "index"_a, "Elements along an axis.");
  c.def(
      "index_add",
      [](const Tensor& x, std::int64_t d, const Tensor& i, const Tensor& y, const Operand& alpha) {
        return ops::scatter(x, i, ops::mul(y, alpha), d, "add");
      },
      "dim"_a, "index"_a, "source"_a, nb::kw_only(), "alpha"_a = 1);
  c.def(
      "scatter_add",
      [](const Tensor& x, std::int64_t d, const Tensor& i, const Tensor& src) {
        return ops::scatter_elements(x, i, src, d, "add");
      },
      "dim"_a, "index"_a, "src"_a);
  c.def(
      "scatter_add", [](const Tensor& x, const Tensor& i, const Tensor& u) { return ops::scatter_nd(x, i, u, "add"); },
      "indices"_a, "updates"_a);
  for (const bool max : {true, false})
    c.def(
        max ? "argmax_with_value" : "argmin_with_value",
        [max](const Tensor& x, std::int64_t axis, bool k) {
          return nb::make_tuple(max ? ops::reduce_max(x, {axis}, k) : ops::reduce_min(x, {axis}, k),
                                max ? ops::argmax(x, axis, k) : ops::argmin(x, axis, k));
        },
        "axis"_a = 0, "keep_dims"_a = false, "(values, positions) of the extreme elements along an axis.");
  c.def(
      "searchsorted",
      [](const Tensor& x, const Tensor& v, const std::string& side, nb::handle sorter) {
        const Tensor* order = unwrap(sorter);
        return ops::searchsorted(order ? ops::gather(x, *order, -1) : x, v, side == "right");
      },
      "v"_a, "side"_a = "left", none_arg("sorter"));
  c.def(
      "new_full",
      [](const Tensor& x, const Shape& s, const Operand& v, std::optional<DType> d) {
        return ops::full(s, v, d.value_or(x.dtype()));
      },
      "size"_a, "fill_value"_a, none_arg("dtype"));
  c.def("equal", [](const Tensor& x, const Operand& y) { return ops::equal(x, y); }, "other"_a);
  c.def_prop_ro("data", [](nb::handle self) { return nb::borrow(self); });
  c.def("value", [](nb::handle self) { return nb::borrow(self); });
  c.def_static(
      "from_numpy", [](nb::handle a) { return to_tensor(a); }, "array"_a, "A Tensor with a copy of the array.");
  c.def("contiguous", [](nb::handle self) { return nb::borrow(self); });
  c.def("is_contiguous", [](const Tensor&) { return true; });
  c.def("is_floating_point", [](const Tensor& x) { return is_floating(x.dtype()); });
  c.def("is_signed", [](const Tensor& x) { return is_signed(x.dtype()) || is_floating(x.dtype()); });
  c.def("is_complex", [](const Tensor&) { return false; });
  c.def("ndimension", [](const Tensor& x) { return x.ndim(); });
  c.def("nelement", [](const Tensor& x) { return x.size(); });
  const std::pair<const char*, std::int64_t> fresh[] = {{"new_zeros", 0}, {"new_ones", 1}};
  for (const auto& [name, v] : fresh)
    c.def(
        name,
        [v = v](const Tensor& x, const Shape& s, std::optional<DType> d) {
          return ops::full(s, Operand(v), d.value_or(x.dtype()));
        },
        "size"_a, none_arg("dtype"));
}

void bind_writing(nb::module_& m, Class& c) {
  const auto assign = [](auto f) {
    return [f](nb::handle self, const Operand& y) {
      const Tensor x = *unwrap(self);
      const Tensor sum = f(x, y);
      if (!x.is_parameter()) return wrap(sum);
      ops::assign(Parameter::of(x), ops::cast(sum, x.dtype()));
      return nb::borrow(self);
    };
  };
  auto p = nb::borrow<nb::class_<ParameterObject, TensorObject>>(m.attr("Parameter"));
  p.def("__iadd__", assign(&ops::add), nb::is_operator());
  p.def("__isub__", assign(&ops::sub), nb::is_operator());
  p.def("__imul__", assign(&ops::mul), nb::is_operator());
  p.def("__itruediv__", assign([](const Operand& x, const Operand& y) { return ops::div(x, y); }), nb::is_operator());
  c.def(
      "assign_value",
      [](nb::handle self, const Tensor& v) {
        const Tensor x = *unwrap(self);
        if (x.is_parameter()) ops::assign(Parameter::of(x), v);
        else x.assign(v);
        return nb::borrow(self);
      },
      "value"_a);
}

}  // namespace

void bind_tensor_methods(nb::module_& m) {
  auto c = nb::borrow<Class>(m.attr("Tensor"));
  nb::module_ functions = nb::borrow<nb::module_>(m.attr("ops"));
  bind_named(functions, c);
  bind_in_place(functions, c);
  bind_operators(c);
  bind_extremum(c, "max", &ops::reduce_max, &ops::argmax);
  bind_extremum(c, "min", &ops::reduce_min, &ops::argmin);
  bind_shapes_of(c);
  bind_values_of(c);
  bind_writing(m, c);
}

}  // namespace undertow::python
