// SPDX-License-Identifier: Apache-2.0
// undertow.ops: tensors made from nothing: constants, ranges, random draws.
#include "python/src/ops_bind.h"
#include "undertow/ops/diagonal.h"
#include "undertow/ops/fill.h"
#include "undertow/ops/random.h"

namespace undertow::python {
namespace {

constexpr DType kFloat = DType::kFloat32;

/// The dtype that a fill value has by itself.
DType dtype_of_value(nb::handle value) { return to_tensor(value).dtype(); }

Tensor full(const Shape& shape, nb::handle value, std::optional<DType> d) {
  const DType dtype = d ? *d : dtype_of_value(value);
  const Tensor* t = unwrap(value);
  if (t) return ops::full(shape, *t, dtype);
  if (PyLong_Check(value.ptr())) return ops::full(shape, Operand(nb::cast<std::int64_t>(value)), dtype);
  return ops::full(shape, Operand(nb::cast<double>(nb::float_(value))), dtype);
}

bool is_float(nb::handle o) {
  if (const Tensor* t = unwrap(o)) return is_floating(t->dtype());
  return PyFloat_Check(o.ptr());
}

Tensor arange(nb::handle start, nb::handle end, nb::handle step, std::optional<DType> d) {
  const nb::object from = end.is_none() ? nb::object(nb::int_(0)) : nb::borrow(start);
  const nb::handle to = end.is_none() ? start : end;
  if (is_float(from) || is_float(to) || is_float(step))
    return ops::range(number_of(from, "arange: start"), number_of(to, "arange: end"), number_of(step, "arange: step"),
                      d.value_or(kFloat));
  return ops::range(integer_of(from, "arange: start"), integer_of(to, "arange: end"), integer_of(step, "arange: step"),
                    d.value_or(DType::kInt64));
}

/// A one-hot value: a number has its own dtype, as MindSpore.
Operand operand_of(nb::handle o, const char* what) {
  Operand v(std::int64_t{0});
  UNDERTOW_CHECK(nb::try_cast(o, v), TypeError, "{} must be a number or a Tensor, got {}", what, type_name_of(o));
  return v;
}

/// ops.rand(2, 3) and ops.rand((2, 3)).
Shape shape_of(const nb::args& size) {
  const nb::handle all = size.size() == 1 ? nb::handle(size[0]) : nb::handle(size);
  Shape shape;
  if (!nb::try_cast(all, shape))
    throw TypeError(fmt::format("size must be ints or a tuple of ints, got {}", repr_of(all)));
  return shape;
}

void bind_random(nb::module_& m) {
  using Draw = Tensor (*)(const Shape&, std::uint64_t);
  const std::tuple<const char*, const char*, Draw, const char*> draws[] = {
      {"rand", "rand_like", &ops::random_uniform, "Uniform in [0, 1), keyed by the seed and the step."},
      {"randn", "randn_like", &ops::standard_normal, "Standard normal, keyed by the seed and the step."}};
  for (const auto& [name, like, f, doc] : draws) {
    m.def(
        name,
        [f = f](const nb::args& size, std::optional<DType> d, nb::handle seed) {
          return ops::cast(f(shape_of(size), seed_of(seed)), d.value_or(kFloat));
        },
        "size"_a, none_arg("dtype"), none_arg("seed"), doc);
    m.def(
        like,
        [f = f](const Tensor& x, nb::handle seed, std::optional<DType> d) {
          return ops::cast(f(x.shape(), seed_of(seed)), d.value_or(x.dtype()));
        },
        input_, none_arg("seed"), nb::kw_only(), none_arg("dtype"), doc);
  }
  const std::pair<const char*, Draw> standard[] = {{"standard_normal", &ops::standard_normal},
                                                   {"standard_laplace", &ops::standard_laplace},
                                                   {"_uniform_real", &ops::random_uniform},
                                                   {"_gumbel", &ops::gumbel}};
  for (const auto& [name, f] : standard)
    m.def(
        name, [f = f](const Shape& s, nb::handle seed) { return f(s, seed_of(seed)); }, "shape"_a, none_arg("seed"),
        "float32 draws, keyed by the seed and the step.");
  m.def(
      "normal",
      [](const Shape& s, const Operand& mean, const Operand& stddev, nb::handle seed) {
        Shape out = s;
        if (mean.is_tensor()) out = broadcast(out, mean.tensor().shape());
        if (stddev.is_tensor()) out = broadcast(out, stddev.tensor().shape());
        return ops::add(ops::mul(ops::standard_normal(out, seed_of(seed)), stddev), mean);
      },
      "shape"_a, "mean"_a, "stddev"_a, none_arg("seed"), "Normal with the given mean and deviation.");
  m.def(
      "laplace",
      [](const Shape& s, const Operand& mean, const Operand& scale, nb::handle seed) {
        Shape out = s;
        if (mean.is_tensor()) out = broadcast(out, mean.tensor().shape());
        if (scale.is_tensor()) out = broadcast(out, scale.tensor().shape());
        return ops::add(ops::mul(ops::standard_laplace(out, seed_of(seed)), scale), mean);
      },
      "shape"_a, "mean"_a, "lambda_param"_a, none_arg("seed"), "Laplace with the given mean and scale.");
  m.def(
      "uniform",
      [](const Shape& s, const Operand& low, const Operand& high, nb::handle seed, std::optional<DType> d) {
        Shape out = s;
        for (const Operand* o : {&low, &high})
          if (o->is_tensor()) out = broadcast(out, o->tensor().shape());
        const DType dtype = d.value_or(kFloat);
        if (is_integral(dtype)) return ops::random_int(out, low, high, dtype, seed_of(seed));
        const Tensor a = low.as(kFloat), u = ops::random_uniform(out, seed_of(seed));
        return ops::cast(ops::add(a, ops::mul(u, ops::sub(high.as(kFloat), a))), dtype);
      },
      "shape"_a, "minval"_a, "maxval"_a, none_arg("seed"), "dtype"_a.none() = nb::none(),
      "Uniform in [minval, maxval), of floats or integers.");
  m.def(
      "randint",
      [](const Operand& low, const Operand& high, const Shape& size, nb::handle seed, std::optional<DType> d) {
        return ops::random_int(size, low, high, d.value_or(DType::kInt64), seed_of(seed));
      },
      "low"_a, "high"_a, "size"_a, none_arg("seed"), nb::kw_only(), none_arg("dtype"), "Integers in [low, high).");
  m.def(
      "randint_like",
      [](const Tensor& x, const Operand& low, const Operand& high, nb::handle seed, std::optional<DType> d) {
        return ops::random_int(x.shape(), low, high, d.value_or(is_integral(x.dtype()) ? x.dtype() : DType::kInt64),
                               seed_of(seed));
      },
      input_, "low"_a, "high"_a, none_arg("seed"), nb::kw_only(), none_arg("dtype"), "Integers in [low, high).");
  m.def(
      "randperm",
      [](std::int64_t n, nb::handle seed, std::int64_t, DType d) {
        return ops::random_permutation(n, d, seed_of(seed));
      },
      "n"_a, "seed"_a.none() = 0, "offset"_a = 0, "dtype"_a = DType::kInt64, "0 to n - 1 in random order.");
  m.def(
      "shuffle", [](const Tensor& x, nb::handle seed) { return ops::shuffle(x, seed_of(seed)); }, "x"_a,
      none_arg("seed"), "Rows in random order.");
  m.def(
      "bernoulli",
      [](const Tensor& x, const Operand& p, nb::handle seed) {
        return ops::bernoulli(x.shape(), p, x.dtype(), seed_of(seed));
      },
      input_, "p"_a = 0.5, none_arg("seed"), "1 with probability p, in the input's shape and dtype.");
  m.def(
      "multinomial",
      [](const Tensor& x, std::int64_t n, bool replacement, nb::handle seed) {
        return ops::cast(ops::multinomial(x, n, replacement, seed_of(seed)), DType::kInt32);
      },
      input_, "num_samples"_a, "replacement"_a = true, none_arg("seed"),
      "Positions drawn in proportion to each row's weights, int32.");
  m.def(
      "random_categorical",
      [](const Tensor& logits, std::int64_t n, nb::handle seed, DType d) {
        return ops::cast(ops::multinomial(ops::softmax(logits), n, true, seed_of(seed)), d);
      },
      "logits"_a, "num_sample"_a, "seed"_a.none() = 0, "dtype"_a = DType::kInt64,
      "Positions drawn with the probabilities softmax(logits).");
  m.def(
      "_truncated_normal", [](const Shape& s, nb::handle seed) { return ops::truncated_normal(s, 2, seed_of(seed)); },
      "shape"_a, none_arg("seed"));
  m.def(
      "_random_int",
      [](const Shape& s, const Operand& low, const Operand& high, nb::handle seed) {
        return ops::random_int(s, low, high, DType::kInt32, seed_of(seed));
      },
      "shape"_a, "minval"_a, "maxval"_a, none_arg("seed"));
}

}  // namespace

double number_of(nb::handle o, const char* what) {
  if (const Tensor* t = unwrap(o)) {
    need_value(*t, what, "Pass a number");
    return t->item_as_double();
  }
  UNDERTOW_CHECK(PyNumber_Check(o.ptr()) && !PyComplex_Check(o.ptr()), TypeError, "{} must be a number, got {}", what,
                 type_name_of(o));
  return nb::cast<double>(nb::float_(o));
}

std::int64_t integer_of(nb::handle o, const char* what) {
  if (const Tensor* t = unwrap(o)) {
    need_value(*t, what, "Pass a number");
    UNDERTOW_CHECK(is_integral(t->dtype()), TypeError, "{} must be an integer, got {}", what, name_of(t->dtype()));
    return t->item_as_int();
  }
  UNDERTOW_CHECK(PyIndex_Check(o.ptr()), TypeError, "{} must be an integer, got {}", what, type_name_of(o));
  return nb::cast<std::int64_t>(nb::int_(o));
}

std::uint64_t seed_of(nb::handle o) {
  if (o.is_none()) return 0;
  const std::int64_t seed = integer_of(o, "seed");
  UNDERTOW_CHECK(seed >= 0, ValueError, "seed cannot be negative, got {}", seed);
  return static_cast<std::uint64_t>(seed);
}

void bind_creation(nb::module_& m) {
  m.def("full", &full, "size"_a, "fill_value"_a, nb::kw_only(), none_arg("dtype"),
        "A tensor of one value, in the value's dtype unless told.");
  m.def(
      "fill", [](std::optional<DType> d, const Shape& s, nb::handle v) { return full(s, v, d); }, "type"_a.none(),
      "shape"_a, "value"_a, "A tensor of one value.");
  m.def(
      "fills", [](const Tensor& x, nb::handle v) { return full(x.shape(), v, x.dtype()); }, "x"_a, "value"_a,
      "One value in the tensor's shape and dtype.");
  const std::tuple<const char*, const char*, std::int64_t> constants[] = {{"zeros", "zeros_like", 0},
                                                                          {"ones", "ones_like", 1}};
  for (const auto& [name, like, value] : constants) {
    const auto fill = [v = value](const Shape& s, std::optional<DType> d) {
      return ops::full(s, Operand(v), d.value_or(kFloat));
    };
    m.def(name, fill, value ? "shape"_a : "size"_a, none_arg("dtype"), "One value, float32 unless told.");
    m.def(name, fill, value ? "size"_a : "shape"_a, none_arg("dtype"));
    m.def(
        like,
        [v = value](const Tensor& x, std::optional<DType> d) {
          return ops::full(x.shape(), Operand(v), d.value_or(x.dtype()));
        },
        input_, nb::kw_only(), none_arg("dtype"), "One value in the input's shape.");
  }
  m.def(
      "full_like",
      [](const Tensor& x, nb::handle v, std::optional<DType> d) { return full(x.shape(), v, d.value_or(x.dtype())); },
      input_, "fill_value"_a, nb::kw_only(), none_arg("dtype"), "One value in the input's shape.");
  m.def("arange", &arange, "start"_a = 0, none_arg("end"), "step"_a = 1, nb::kw_only(), none_arg("dtype"),
        "Numbers from start (0) up to, not including, end; int64 from integers, float32 from floats, unless told.");
  m.def(
      "range", [](nb::handle a, nb::handle b, nb::handle s, std::int64_t) { return arange(a, b, s, std::nullopt); },
      "start"_a, "end"_a, "step"_a = 1, "maxlen"_a = 1000000, "As arange.");
  m.def(
      "linspace",
      [](const Operand& a, const Operand& b, nb::handle n) {
        const DType d = a.is_tensor() && a.tensor().dtype() == DType::kFloat64 ? DType::kFloat64 : kFloat;
        return ops::linspace(a, b, integer_of(n, "linspace: steps"), d);
      },
      "start"_a, "end"_a, "steps"_a, "Evenly spaced numbers, both ends included.");
  m.def(
      "logspace",
      [](const Operand& a, const Operand& b, nb::handle n, double base, DType d) {
        return ops::logspace(a, b, integer_of(n, "logspace: steps"), base, d);
      },
      "start"_a, "end"_a, "steps"_a, "base"_a = 10.0, nb::kw_only(), "dtype"_a = kFloat,
      "base to the power of evenly spaced numbers.");
  m.def(
      "eye",
      [](std::int64_t n, std::optional<std::int64_t> columns, std::optional<DType> d) {
        return ops::eye(n, columns.value_or(n), d.value_or(kFloat));
      },
      "n"_a, none_arg("m"), none_arg("dtype"), "Ones on the main diagonal, zeros elsewhere.");
  m.def(
      "one_hot",
      [](const Tensor& i, nb::handle depth, nb::handle on, nb::handle off, std::int64_t axis) {
        const Operand a = operand_of(on, "one_hot: on_value"), b = operand_of(off, "one_hot: off_value");
        const DType d = a.is_tensor() ? a.tensor().dtype() : dtype_of_value(on);
        return ops::one_hot(i, integer_of(depth, "one_hot: depth"), a, b, d, axis);
      },
      "indices"_a, "depth"_a, "on_value"_a = 1, "off_value"_a = 0, "axis"_a = -1,
      "A new dimension of `depth` with on_value at the index, in on_value's dtype.");
  for (const bool upper : {false, true})
    m.def(
        upper ? "triu_indices" : "tril_indices",
        [upper](std::int64_t r, std::int64_t c, std::int64_t offset, DType d) {
          return ops::triangle_indices(r, c, offset, upper, d);
        },
        "row"_a, "col"_a, "offset"_a = 0, nb::kw_only(), "dtype"_a = DType::kInt64,
        "(2, n): rows and columns of a triangle.");
  bind_random(m);
}

}  // namespace undertow::python
