// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "undertow/data/column_op.h"
#include "undertow/data/strings.h"
#include "undertow/data/vision/work.h"

namespace undertow::data::transforms {
namespace {

/// `v` as T where T can hold it.
template <typename T>
T element(const char* op, double v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else if constexpr (std::is_integral_v<T>) {
    // The limits of 64 bits are not doubles: the upper one is excluded.
    UNDERTOW_CHECK(v >= static_cast<double>(std::numeric_limits<T>::min()) &&
                       v < static_cast<double>(std::numeric_limits<T>::max()) + 1.,
                   DataError, "{}: {} does not fit a column of {}", op, v, numpy_name_of(dtype_of<T>::v));
    return static_cast<T>(v);
  } else {
    return static_cast<T>(v);
  }
}

/// A number that compares and converts: the half types as float.
template <typename T>
auto plain(T v) {
  if constexpr (std::is_arithmetic_v<T>) return v;
  else return static_cast<float>(v);
}

void check_transforms(const char* op, const std::vector<Op>& transforms) {
  UNDERTOW_CHECK(!transforms.empty(), ValueError, "{}: transforms is empty", op);
}

/// The places that a slice takes of n, as Python counts them.
std::vector<std::int64_t> places_of(const SliceOf& s, std::int64_t n, int dim) {
  std::vector<std::int64_t> out;
  if (s.places) {
    for (std::int64_t p : *s.places) {
      UNDERTOW_CHECK(p >= -n && p < n, DataError, "Slice: place {} of dimension {}, which has {} elements", p, dim, n);
      out.push_back(p < 0 ? p + n : p);
    }
    return out;
  }
  const bool up = s.step > 0;
  const auto bound = [&](std::optional<std::int64_t> given, std::int64_t otherwise) {
    if (!given) return otherwise;
    const std::int64_t v = *given < 0 ? *given + n : *given;
    return std::clamp<std::int64_t>(v, up ? 0 : -1, up ? n : n - 1);
  };
  const std::int64_t from = bound(s.start, up ? 0 : n - 1), to = bound(s.stop, up ? n : -1);
  for (std::int64_t i = from; up ? i < to : i > to; i += s.step) out.push_back(i);
  return out;
}

/// Texts are sliced as elements: their width, the last dimension, stays.
Tensor sliced(const Tensor& x, const std::vector<SliceOf>& slices) {
  const Shape given = is_text(x) ? text_shape(x) : x.shape();
  UNDERTOW_CHECK(static_cast<int>(slices.size()) <= given.rank(), DataError, "Slice: {} slices of a column of shape {}",
                 slices.size(), given.str());
  std::vector<std::vector<std::int64_t>> places;
  Shape shape;
  for (int d = 0; d < x.ndim(); ++d) {
    places.push_back(places_of(
        static_cast<std::size_t>(d) < slices.size() ? slices[static_cast<std::size_t>(d)] : SliceOf{}, x.shape(d), d));
    shape.push_back(static_cast<std::int64_t>(places.back().size()));
  }
  Tensor y = is_text(x) ? text_tensor(x.dtype(), shape) : Tensor(x.dtype(), shape);
  const std::size_t item = size_of(x.dtype());
  const auto* in = static_cast<const std::byte*>(x.data());
  auto* out = static_cast<std::byte*>(y.data());
  const std::vector<std::int64_t> strides = contiguous_strides(x.shape());
  const auto copy = [&](auto&& self, std::size_t d, std::int64_t at) -> void {
    if (d == places.size()) {
      std::memcpy(out, in + static_cast<std::size_t>(at) * item, item);
      out += item;
      return;
    }
    for (const std::int64_t p : places[d]) self(self, d + 1, at + p * strides[d]);
  };
  copy(copy, 0, 0);
  return y;
}

}  // namespace

Op TypeCast(DType dtype) {
  return lazy_op("TypeCast", 1, [dtype](LazyRow& row, const RowContext&) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (vision::Work* w = vision::Work::of(row, c)) {
        w->cast(dtype);
        continue;
      }
      check_numbers("TypeCast", row.column(c));
      if (row.column(c).dtype() != dtype) row.set(c, row.column(c).to(dtype));
    }
  });
}

Op OneHot(std::int64_t n, double smoothing_rate) {
  UNDERTOW_CHECK(n >= 1, ValueError, "OneHot: num_classes must be positive, got {}", n);
  UNDERTOW_CHECK(smoothing_rate >= 0 && smoothing_rate <= 1, ValueError,
                 "OneHot: smoothing_rate must be in [0, 1], got {}", smoothing_rate);
  return column_op("OneHot", [n, s = smoothing_rate](const Tensor& x) {
    UNDERTOW_CHECK(is_integral(x.dtype()), DataError, "OneHot takes integers, got {} of shape {}",
                   numpy_name_of(x.dtype()), x.shape().str());
    Shape shape = x.shape();
    shape.push_back(n);
    const Tensor y =
        s == 0 ? Tensor::zeros(shape, x.dtype()) : Tensor::full(shape, s / static_cast<double>(n), DType::kFloat64);
    dispatch(x.dtype(), [&](auto tag) {
      using T = decltype(tag);
      const T* in = static_cast<const T*>(x.data());
      for (std::int64_t i = 0; i < x.size(); ++i) {
        // Unsigned comparison refuses negative labels too.
        const auto label = static_cast<std::uint64_t>(plain(in[i]));
        UNDERTOW_CHECK(label < static_cast<std::uint64_t>(n), DataError,
                       "OneHot: label {} is not in [0, num_classes) = [0, {})", static_cast<double>(plain(in[i])), n);
        const std::int64_t at = i * n + static_cast<std::int64_t>(label);
        if (s == 0) static_cast<T*>(y.data())[at] = T{1};
        else static_cast<double*>(y.data())[at] = 1 - s + s / static_cast<double>(n);
      }
    });
    return y;
  });
}

Op Fill(double fill_value) {
  return column_op("Fill", [fill_value](const Tensor& x) {
    Tensor y(x.dtype(), x.shape());
    dispatch(x.dtype(), [&](auto tag) {
      using T = decltype(tag);
      std::fill_n(static_cast<T*>(y.data()), y.size(), element<T>("Fill", fill_value));
    });
    return y;
  });
}

Op Mask(Relational relation, double constant, DType dtype) {
  return column_op("Mask", [=](const Tensor& x) {
    Tensor y(DType::kBool, x.shape());
    bool* out = static_cast<bool*>(y.data());
    dispatch(x.dtype(), [&](auto tag) {
      using T = decltype(tag);
      const T* in = static_cast<const T*>(x.data());
      for (std::int64_t i = 0; i < x.size(); ++i) {
        const auto v = static_cast<double>(plain(in[i]));
        switch (relation) {
          case Relational::kEq: out[i] = v == constant; break;
          case Relational::kNe: out[i] = v != constant; break;
          case Relational::kLt: out[i] = v < constant; break;
          case Relational::kLe: out[i] = v <= constant; break;
          case Relational::kGt: out[i] = v > constant; break;
          case Relational::kGe: out[i] = v >= constant; break;
        }
      }
    });
    return dtype == DType::kBool ? y : y.to(dtype);
  });
}

Op Slice(std::vector<SliceOf> slices) {
  UNDERTOW_CHECK(!slices.empty(), ValueError, "Slice: no slices given");
  for (const SliceOf& s : slices) UNDERTOW_CHECK(s.step != 0, ValueError, "Slice: a step of 0");
  return row_op("Slice", 1, [slices](const Row& in, const RowContext&) {
    Row out;
    for (const Tensor& x : in) out.push_back(sliced(x, slices));
    return out;
  });
}

Op Concatenate(std::int64_t axis, std::optional<Tensor> prepend, std::optional<Tensor> append) {
  UNDERTOW_CHECK(axis == 0 || axis == -1, ValueError, "Concatenate: axis must be 0 or -1, got {}", axis);
  for (const auto* t : {&prepend, &append})
    UNDERTOW_CHECK(!*t || (*t)->ndim() == 1, ValueError, "Concatenate: {} must be 1-D, got shape {}",
                   t == &prepend ? "prepend" : "append", (*t)->shape().str());
  return row_op("Concatenate", -1, [prepend, append](const Row& in, const RowContext&) {
    std::vector<Tensor> parts;
    if (prepend) parts.push_back(*prepend);
    parts.insert(parts.end(), in.begin(), in.end());
    if (append) parts.push_back(*append);
    std::int64_t n = 0;
    for (const Tensor& t : parts) {
      check_numbers("Concatenate", t);
      UNDERTOW_CHECK(t.ndim() == 1, DataError, "Concatenate takes 1-D columns, got shape {}", t.shape().str());
      UNDERTOW_CHECK(t.dtype() == in[0].dtype(), DataError, "Concatenate: columns of {} and {}",
                     numpy_name_of(in[0].dtype()), numpy_name_of(t.dtype()));
      n += t.size();
    }
    Tensor y(in[0].dtype(), {n});
    auto* out = static_cast<std::byte*>(y.data());
    for (const Tensor& t : parts) {
      if (t.nbytes()) std::memcpy(out, t.data(), t.nbytes());
      out += t.nbytes();
    }
    return Row{y};
  });
}

Op Duplicate() {
  return row_op("Duplicate", 1, [](const Row& in, const RowContext&) {
    UNDERTOW_CHECK(in.size() == 1, DataError, "Duplicate takes one column, got {}", in.size());
    return Row{in[0], in[0].clone()};
  });
}

Op PadEnd(std::vector<std::optional<std::int64_t>> pad_shape, double pad_value) {
  for (const auto& n : pad_shape)
    UNDERTOW_CHECK(!n || *n >= 0, ValueError, "PadEnd: pad_shape must not be negative, got {}", *n);
  return column_op("PadEnd", [=](const Tensor& x) {
    UNDERTOW_CHECK(static_cast<int>(pad_shape.size()) == x.ndim(), DataError,
                   "PadEnd: pad_shape has {} dimensions, the column has shape {}", pad_shape.size(), x.shape().str());
    Shape shape, kept;
    for (int d = 0; d < x.ndim(); ++d) {
      shape.push_back(pad_shape[static_cast<std::size_t>(d)].value_or(x.shape(d)));
      kept.push_back(std::min(shape[d], x.shape(d)));
    }
    Tensor y(x.dtype(), shape);
    dispatch(x.dtype(), [&](auto tag) {
      using T = decltype(tag);
      std::fill_n(static_cast<T*>(y.data()), y.size(), element<T>("PadEnd", pad_value));
    });
    if (kept.numel() == 0) return y;
    const std::size_t item = size_of(x.dtype());
    const auto from = contiguous_strides(x.shape()), to = contiguous_strides(shape);
    const std::int64_t run = x.ndim() ? kept.back() : 1;
    const auto copy = [&](auto&& self, int d, std::int64_t a, std::int64_t b) -> void {
      if (d >= x.ndim() - 1) {
        std::memcpy(static_cast<std::byte*>(y.data()) + static_cast<std::size_t>(b) * item,
                    static_cast<const std::byte*>(x.data()) + static_cast<std::size_t>(a) * item,
                    static_cast<std::size_t>(run) * item);
        return;
      }
      const auto i = static_cast<std::size_t>(d);
      for (std::int64_t k = 0; k < kept[d]; ++k) self(self, d + 1, a + k * from[i], b + k * to[i]);
    };
    copy(copy, 0, 0, 0);
    return y;
  });
}

Op Unique() {
  return row_op("Unique", 1, [](const Row& in, const RowContext&) {
    UNDERTOW_CHECK(in.size() == 1, DataError, "Unique takes one column, got {}", in.size());
    const Tensor& x = in[0];
    check_numbers("Unique", x);
    Row out;
    dispatch(x.dtype(), [&](auto tag) {
      using T = decltype(tag);
      const T* v = static_cast<const T*>(x.data());
      std::vector<std::int64_t> order(static_cast<std::size_t>(x.size()));
      std::iota(order.begin(), order.end(), std::int64_t{0});
      // NaNs are one value, after all others.
      const auto less = [](T a, T b) -> bool {
        if constexpr (std::is_integral_v<T>) return a < b;
        else return plain(a) < plain(b) || (std::isnan(plain(b)) && !std::isnan(plain(a)));
      };
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return less(v[a], v[b]); });
      std::vector<std::int64_t> first(order.size());  // where the element's value appears first
      for (std::size_t i = 0; i < order.size(); ++i)
        first[static_cast<std::size_t>(order[i])] =
            i && !less(v[order[i - 1]], v[order[i]]) ? first[static_cast<std::size_t>(order[i - 1])] : order[i];
      std::vector<std::int32_t> index(order.size()), counts;
      std::vector<std::int64_t> values;
      for (std::size_t i = 0; i < first.size(); ++i) {
        if (first[i] == static_cast<std::int64_t>(i)) {
          index[i] = static_cast<std::int32_t>(values.size());
          values.push_back(first[i]);
          counts.push_back(0);
        } else {
          index[i] = index[static_cast<std::size_t>(first[i])];
        }
        ++counts[static_cast<std::size_t>(index[i])];
      }
      Tensor unique(x.dtype(), {static_cast<std::int64_t>(values.size())});
      for (std::size_t i = 0; i < values.size(); ++i) static_cast<T*>(unique.data())[i] = v[values[i]];
      out = Row{unique, Tensor(std::span<const std::int32_t>(index)), Tensor(std::span<const std::int32_t>(counts))};
    });
    return out;
  });
}

Op Compose(std::vector<Op> transforms) { return chain("Compose", std::move(transforms)); }

Op RandomApply(std::vector<Op> transforms, double prob) {
  check_transforms("RandomApply", transforms);
  UNDERTOW_CHECK(prob >= 0 && prob <= 1, ValueError, "RandomApply: prob must be in [0, 1], got {}", prob);
  const int arity = transforms.front()->arity();
  return lazy_op(
      "RandomApply", arity,
      [=](LazyRow& row, const RowContext& context) {
        if (context.random().uniform64() >= prob) return;
        for (std::size_t i = 0; i < transforms.size(); ++i) extend(*transforms[i], row, inner(context, i + 1));
      },
      transforms);
}

Op RandomChoice(std::vector<Op> transforms) {
  check_transforms("RandomChoice", transforms);
  const int arity = transforms.front()->arity();
  return lazy_op(
      "RandomChoice", arity,
      [=](LazyRow& row, const RowContext& context) {
        const auto i = static_cast<std::size_t>(context.random().below(transforms.size()));
        extend(*transforms[i], row, inner(context, i + 1));
      },
      transforms);
}

Op RandomOrder(std::vector<Op> transforms) {
  check_transforms("RandomOrder", transforms);
  const int arity = transforms.front()->arity();
  return lazy_op(
      "RandomOrder", arity,
      [=](LazyRow& row, const RowContext& context) {
        PhiloxStream random = context.random();
        std::vector<std::size_t> order(transforms.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
        for (const std::size_t i : order) extend(*transforms[i], row, inner(context, i + 1));
      },
      transforms);
}

}  // namespace undertow::data::transforms
