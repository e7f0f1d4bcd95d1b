// SPDX-License-Identifier: Apache-2.0
// undertow.ops: running reductions, sorting, and what depends on values (unique, nonzero, ...).
#include <limits>

#include "python/src/ops_bind.h"
#include "undertow/ops/cumulative.h"
#include "undertow/ops/dynamic.h"
#include "undertow/ops/fill.h"
#include "undertow/ops/sort.h"

namespace undertow::python {
namespace {

using Axis = std::optional<std::int64_t>;

/// MindSpore's positions of sort, argsort and topk are int32.
nb::object with_int32(const std::pair<Tensor, Tensor>& p) {
  return nb::make_tuple(p.first, ops::cast(p.second, DType::kInt32));
}

nb::object unique_result(const ops::Unique& u, bool inverse, bool counts) {
  nb::list out;
  out.append(wrap(u.values));
  if (inverse) out.append(wrap(u.inverse));
  if (counts) out.append(wrap(u.counts));
  return nb::len(out) == 1 ? nb::object(out[0]) : nb::object(nb::tuple(out));
}

void bind_running(nb::module_& m) {
  using D = std::optional<DType>;
  using Running = Tensor (*)(const Tensor&, std::int64_t, bool, bool);
  const auto sum = [](const Tensor& x, std::int64_t a, D d) { return ops::cumsum(d ? ops::cast(x, *d) : x, a); };
  m.def("cumsum", sum, "x"_a, "axis"_a, none_arg("dtype"), "Running sum along an axis, in the input's dtype.");
  m.def("cumsum", sum, input_, "dim"_a, none_arg("dtype"));
  const auto product = [](const Tensor& x, std::int64_t a, D d) {
    const Tensor t = d ? ops::cast(x, *d) : is_floating(x.dtype()) ? x : ops::cast(x, DType::kInt64);
    return ops::cumprod(t, a);
  };
  m.def("cumprod", product, input_, "dim"_a, none_arg("dtype"), "Running product along an axis; of integers in int64.");
  m.def("cumprod", product, "x"_a, "axis"_a, none_arg("dtype"));
  const std::pair<const char*, Running> full[] = {{"_cumsum", &ops::cumsum}, {"_cumprod", &ops::cumprod}};
  for (const auto& [name, f] : full) m.def(name, f, "x"_a, "axis"_a, "exclusive"_a = false, "reverse"_a = false);
  m.def("cummax", &ops::cummax, input_, "axis"_a, "(running maximum, its position) along an axis; NaN wins.");
  m.def("cummin", &ops::cummin, input_, "axis"_a, "(running minimum, its position) along an axis; NaN wins.");
  m.def("logcumsumexp", &ops::logcumsumexp, input_, "axis"_a, "log of the running sum of exponentials.");
}

}  // namespace

void bind_order(nb::module_& m) {
  bind_running(m);
  const auto sort = [](const Tensor& x, std::int64_t a, bool d) { return with_int32(ops::sort(x, a, d)); };
  m.def("sort", sort, "input_x"_a, "axis"_a = -1, "descending"_a = false,
        "(values in order along an axis, where they stood); stable, NaN is the largest.");
  m.def(
      "sort", [sort](const Tensor& x, std::int64_t a, bool d, bool) { return sort(x, a, d); }, input_, nb::kw_only(),
      "dim"_a = -1, "descending"_a = false, "stable"_a = true);
  const auto argsort = [](const Tensor& x, std::int64_t a, bool d) {
    return ops::cast(ops::sort(x, a, d).second, DType::kInt32);
  };
  m.def("argsort", argsort, input_, "axis"_a = -1, "descending"_a = false, "Where the elements in order stood, int32.");
  m.def(
      "argsort", [argsort](const Tensor& x, std::int64_t a, bool d, bool) { return argsort(x, a, d); }, input_,
      nb::kw_only(), "dim"_a = -1, "descending"_a = false, "stable"_a = true);
  m.def(
      "msort", [](const Tensor& x) { return ops::sort(x, 0).first; }, input_,
      "In ascending order along the first axis.");
  m.def(
      "topk",
      [](const Tensor& x, nb::handle k, Axis dim, bool largest, bool) {
        return with_int32(ops::topk(x, integer_of(k, "topk: k"), dim.value_or(-1), largest));
      },
      input_, "k"_a, none_arg("dim"), "largest"_a = true, "sorted"_a = true,
      "(the k largest or smallest along an axis in order, where they stood).");
  m.def(
      "top_k", [](const Tensor& x, nb::handle k, bool) { return with_int32(ops::topk(x, integer_of(k, "top_k: k"))); },
      "input_x"_a, "k"_a, "sorted"_a = true, "The k largest of the last axis in order, and where they stood.");
  for (const char* axis : {"dim", "axis"}) {
    const char* keep = axis[0] == 'd' ? "keepdim" : "keepdims";
    m.def("kthvalue", &ops::kthvalue, input_, "k"_a, nb::arg(axis) = -1, nb::arg(keep) = false,
          "(the k-th smallest, its position) along an axis.");
    m.def("median", &ops::median, input_, nb::arg(axis) = -1, nb::arg(keep) = false,
          "(the lower middle value, its position) along an axis.");
  }
  for (const bool ignore : {false, true})
    m.def(
        ignore ? "nanquantile" : "quantile",
        [ignore](const Tensor& x, nb::handle q, Axis axis, bool keep) -> Tensor {
          if (const Tensor* t = unwrap(q); (t && t->ndim() == 1) || PySequence_Check(q.ptr())) {
            std::vector<Tensor> each;
            for (nb::handle one : q)
              each.push_back(ops::quantile(x, number_of(one, "quantile: q"), axis, keep, ignore));
            return ops::stack(each);
          }
          return ops::quantile(x, number_of(q, "quantile: q"), axis, keep, ignore);
        },
        input_, "q"_a, none_arg("axis"), "keepdims"_a = false, "q-quantiles, linear between neighbours.");
  m.def(
      "nanmedian",
      [](const Tensor& x, std::int64_t axis, bool keep) {
        // The lower middle of what is not NaN: sorted, NaN stands last.
        const int a = normalize_axis(axis, x.ndim(), "nanmedian");
        const auto [values, at] = ops::sort(x, a);
        const Tensor count = ops::reduce_sum(ops::cast(ops::logical_not(ops::isnan(x)), DType::kInt64), {a}, true);
        const Tensor place = ops::maximum(ops::floor_div(ops::sub(count, 1), 2), 0);
        const Tensor here = ops::equal(ops::iota(x.shape(), a, DType::kInt64), place);
        const Tensor value =
            ops::reduce_max(ops::select(here, values, -std::numeric_limits<double>::infinity()), {a}, keep);
        return nb::make_tuple(value, ops::reduce_sum(ops::select(here, at, std::int64_t{0}), {a}, keep));
      },
      input_, "axis"_a = -1, "keepdims"_a = false, "(the lower middle value of what is not NaN, its position).");
  m.def(
      "searchsorted",
      [](const Tensor& s, const Tensor& v, bool int32, bool right, const std::optional<std::string>& side,
         nb::handle sorter) {
        UNDERTOW_CHECK(!side || *side == "left" || *side == "right", ValueError,
                       "searchsorted: side must be 'left' or 'right', got '{}'", side.value_or(""));
        const Tensor* order = unwrap(sorter);
        const Tensor sorted = order ? ops::gather(s, *order, -1) : s;
        const Tensor at = ops::searchsorted(sorted, v, side ? *side == "right" : right);
        return int32 ? ops::cast(at, DType::kInt32) : at;
      },
      "sorted_sequence"_a, "values"_a, nb::kw_only(), "out_int32"_a = false, "right"_a = false, none_arg("side"),
      none_arg("sorter"), "Where values would be inserted to keep an ascending sequence in order.");
  m.def(
      "bucketize",
      [](const Tensor& x, nb::handle boundaries, bool right) {
        return ops::cast(ops::searchsorted(to_tensor(boundaries), x, right), DType::kInt32);
      },
      input_, "boundaries"_a, nb::kw_only(), "right"_a = false, "The bucket between boundaries that holds each value.");

  m.def(
      "nonzero",
      [](const Tensor& x, bool as_tuple_) -> nb::object {
        const Tensor at = ops::nonzero(x);
        if (!as_tuple_) return wrap(at);
        std::vector<Tensor> columns;
        for (int d = 0; d < x.ndim(); ++d)
          columns.push_back(ops::reshape(ops::slice(at, {0, d}, {1, 1}, Shape{at.shape(0), 1}), {-1}));
        return as_tuple(columns);
      },
      input_, nb::kw_only(), "as_tuple"_a = false, "Positions of what is not 0, (n, rank) int64. Eager only.");
  m.def(
      "argwhere", [](const Tensor& x) { return ops::nonzero(x, "argwhere"); }, input_,
      "Positions of what is not 0, (n, rank) int64. Eager only.");
  m.def("masked_select", &ops::masked_select, input_, "mask"_a, "Elements where the mask is true. Eager only.");
  m.def(
      "unique",
      [](const Tensor& x) {
        const ops::Unique u = ops::unique(x, false);
        return nb::make_tuple(u.values,
                              ops::cast(u.inverse, x.dtype() == DType::kInt32 ? DType::kInt32 : DType::kInt64));
      },
      input_, "(values in order of appearance, which of them each element is). Eager only.");
  m.def(
      "_unique",
      [](const Tensor& x, bool sorted, bool inverse, bool counts) {
        return unique_result(ops::unique(x, sorted), inverse, counts);
      },
      input_, "sorted"_a = true, "return_inverse"_a = false, "return_counts"_a = false);
  m.def(
      "unique_consecutive",
      [](const Tensor& x, bool inverse, bool counts, nb::handle dim) {
        UNDERTOW_CHECK(dim.is_none(), ValueError, "unique_consecutive: only dim=None is supported");
        return unique_result(ops::unique_consecutive(x), inverse, counts);
      },
      input_, "return_inverse"_a = false, "return_counts"_a = false, none_arg("dim"),
      "The flattened tensor without repeated neighbours. Eager only.");
  m.def(
      "bincount",
      [](const Tensor& x, const std::optional<Tensor>& w, std::int64_t n) {
        return ops::bincount(x, w.value_or(Tensor()), n);
      },
      input_, none_arg("weights"), "minlength"_a = 0, "How often each number appears, float32. Eager only.");
  m.def(
      "sequence_mask",
      [](const Tensor& lengths, std::optional<std::int64_t> n) {
        const std::int64_t width =
            n ? *n : std::max<std::int64_t>(0, ops::largest(lengths, "sequence_mask", "Pass maxlen"));
        return ops::sequence_mask(lengths, width);
      },
      "lengths"_a, none_arg("maxlen"), "(..., maxlen) bool: position < length.");
}

}  // namespace undertow::python
