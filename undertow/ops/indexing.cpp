// SPDX-License-Identifier: Apache-2.0
// Square brackets. Integers, slices, None and ... are one slice and one reshape; positions in tensors are one gather
// (or scatter) over the joined dimensions that they index.
#include "undertow/ops/indexing.h"

#include <algorithm>
#include <numeric>

#include "undertow/base/check.h"
#include "undertow/ops/arrange.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/dynamic.h"
#include "undertow/ops/reference/reference.h"
#include "undertow/ops/scatter.h"

namespace undertow::ops {

using Ints = std::vector<std::int64_t>;

namespace {

struct Range {  // of one axis
  std::int64_t begin, step, extent;
};

Range slice_range(const Index& item, std::int64_t n) {
  const std::int64_t step = item.step.value_or(1);
  UNDERTOW_CHECK(step != 0, ValueError, "a slice's step cannot be 0");
  const auto bound = [&](std::optional<std::int64_t> v, std::int64_t missing) {
    if (!v) return missing;
    const std::int64_t i = *v < 0 ? *v + n : *v;
    return step > 0 ? std::clamp<std::int64_t>(i, 0, n) : std::clamp<std::int64_t>(i, -1, n - 1);
  };
  const std::int64_t begin = bound(item.begin, step > 0 ? 0 : n - 1), end = bound(item.end, step > 0 ? n : -1);
  const std::int64_t extent = step > 0 ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step;
  return {begin, step, std::max<std::int64_t>(extent, 0)};
}

bool is_mask(const Index& item) { return item.kind == Index::kTensor && item.tensor.dtype() == DType::kBool; }

int axes_of(const Index& item) {
  if (item.kind == Index::kNewAxis || item.kind == Index::kEllipsis) return 0;
  return is_mask(item) ? item.tensor.ndim() : 1;
}

/// One item an axis or new axis: ... written out, masks as the positions that they pick.
std::vector<Index> spelled_out(const Tensor& x, const std::vector<Index>& items) {
  int consumed = 0;
  bool ellipsis = false;
  for (const auto& i : items) {
    consumed += axes_of(i);
    UNDERTOW_CHECK(!(ellipsis && i.kind == Index::kEllipsis), IndexError, "an index can have only one ellipsis (...)");
    ellipsis |= i.kind == Index::kEllipsis;
  }
  UNDERTOW_CHECK(consumed <= x.ndim(), IndexError, "too many indices: {} for a tensor of shape {}", consumed,
                 x.shape().str());
  std::vector<Index> full;
  const auto rest = [&] {
    full.insert(full.end(), static_cast<std::size_t>(x.ndim() - consumed), Index{Index::kSlice});
  };
  int axis = 0;
  for (const auto& i : items) {
    if (i.kind == Index::kEllipsis) {
      rest();
      axis += x.ndim() - consumed;
      continue;
    }
    if (!is_mask(i)) {
      full.push_back(i);
      axis += axes_of(i);
      continue;
    }
    for (int d = 0; d < i.tensor.ndim(); ++d, ++axis)
      UNDERTOW_CHECK(i.tensor.shape(d) == x.shape(axis), IndexError,
                     "a mask of shape {} does not fit a tensor of shape {}: dimension {} has {} elements",
                     i.tensor.shape().str(), x.shape().str(), axis, x.shape(axis));
    if (i.tensor.ndim() == 0) {  // a new axis with one element or none
      full.push_back({Index::kNewAxis});
      continue;
    }
    for (const Tensor& column : unstack(nonzero(i.tensor, "an index that is a bool mask"), 1)) {
      Index positions{Index::kTensor};
      positions.tensor = column;
      full.push_back(positions);
    }
  }
  if (!ellipsis) rest();
  return full;
}

/// What an index does: a slice of x, whose axes of extent 1 come or go by a reshape; then, where tensors index, one
/// gather along `axis` of the result seen with `order` of its axes and the indexed ones joined.
struct Plan {
  Ints begin, steps;
  Shape sliced;
  Ints shape;  // after the reshape
  Ints order;  // axes of `shape`, the indexed ones together at `axis`
  Ints joined;
  int axis = -1;
  Tensor positions;  // into the joined axis, in the shape of the index
  Ints indexed;      // extents of the indexed axes
};

Plan plan_of(const Tensor& x, const std::vector<Index>& items) {
  Plan p;
  std::vector<std::pair<std::int64_t, Tensor>> tensors;  // axis of `shape`
  int axis = 0;
  bool together = true, gap = false, any = false;
  std::int64_t first = 0;
  const bool advanced =
      std::any_of(items.begin(), items.end(), [](const Index& i) { return i.kind == Index::kTensor; });
  for (const auto& item : items) {
    const auto take = [&](Range r) {
      p.begin.push_back(r.begin);
      p.steps.push_back(r.step);
      p.sliced.push_back(r.extent);
      ++axis;
    };
    // NumPy counts integers among tensors as tensors of one element when it decides where the new axes go.
    const bool counts = item.kind == Index::kTensor || (advanced && item.kind == Index::kInteger);
    if (counts) {
      if (!any) first = static_cast<std::int64_t>(p.shape.size());
      if (gap) together = false;
      any = true;
    } else {
      gap = any;
    }
    switch (item.kind) {
      case Index::kEllipsis: break;  // spelled out
      case Index::kNewAxis: p.shape.push_back(1); break;
      case Index::kInteger: {
        const std::int64_t n = x.shape(axis), v = item.value < 0 ? item.value + n : item.value;
        UNDERTOW_CHECK(v >= 0 && v < n, IndexError, "index {} is out of range for axis {} with {} elements", item.value,
                       axis, n);
        take({v, 1, 1});
        break;
      }
      case Index::kSlice: {
        const Range r = slice_range(item, x.shape(axis));
        p.shape.push_back(r.extent);
        take(r);
        break;
      }
      case Index::kTensor:
        UNDERTOW_CHECK(is_integral(item.tensor.dtype()), IndexError,
                       "a tensor used as an index must hold integers or bools, got {}", name_of(item.tensor.dtype()));
        tensors.emplace_back(static_cast<std::int64_t>(p.shape.size()), item.tensor);
        p.indexed.push_back(x.shape(axis));
        p.shape.push_back(x.shape(axis));
        take({0, 1, x.shape(axis)});
        break;
    }
  }
  if (tensors.empty()) return p;

  // Axes before the place of the indexed ones, these, the rest.
  const std::int64_t place = together ? first : 0;
  std::vector<Tensor> positions;
  for (const auto& [a, t] : tensors) positions.push_back(t);
  const auto is_indexed = [&](std::int64_t a) {
    return std::any_of(tensors.begin(), tensors.end(), [a](const auto& t) { return t.first == a; });
  };
  Ints others;
  for (std::int64_t a = 0; a < static_cast<std::int64_t>(p.shape.size()); ++a)
    if (!is_indexed(a)) others.push_back(a);
  p.order = others;
  Ints mine;
  for (const auto& [a, t] : tensors) mine.push_back(a);
  p.order.insert(p.order.begin() + place, mine.begin(), mine.end());
  p.axis = static_cast<int>(place);
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (static_cast<std::int64_t>(i) == place) p.joined.push_back(-2);
    p.joined.push_back(p.shape[static_cast<std::size_t>(others[i])]);
  }
  if (static_cast<std::int64_t>(others.size()) == place) p.joined.push_back(-2);
  p.joined[static_cast<std::size_t>(place)] =
      std::accumulate(p.indexed.begin(), p.indexed.end(), std::int64_t{1}, std::multiplies<>());

  if (positions.size() == 1) {
    p.positions = positions[0];  // gather looks at its range
    return p;
  }
  positions = broadcast_tensors(positions);
  std::int64_t stride = 1;
  for (std::size_t i = positions.size(); i-- > 0;) {
    const std::int64_t n = p.indexed[i];
    apply("check_index", {positions[i]}, {{"low", -n}, {"high", n}});
    Tensor t = cast(positions[i], DType::kInt64);
    t = select(less(t, 0), add(t, n), t);
    p.positions = p.positions.defined() ? add(p.positions, mul(t, stride)) : t;
    stride *= n;
  }
  return p;
}

Tensor read(const Tensor& x, const Plan& p) {
  const Tensor y = reshape(slice(x, p.begin, p.steps, p.sliced), p.shape);
  if (p.axis < 0) return y;
  return gather(reshape(transpose(y, p.order), p.joined), p.positions, p.axis);
}

/// A mask that covers x's first dimensions, and a value that is the same for all that it picks.
std::optional<Tensor> masked(const Tensor& x, const std::vector<Index>& items, const Operand& value) {
  if (items.size() != 1 || !is_mask(items[0])) return std::nullopt;
  const Tensor& mask = items[0].tensor;
  if (mask.ndim() == 0 || mask.ndim() > x.ndim()) return std::nullopt;
  for (int d = 0; d < mask.ndim(); ++d)
    if (mask.shape(d) != x.shape(d)) return std::nullopt;  // said in plan_of
  Tensor v = value.as(x.dtype());
  const int rest = x.ndim() - mask.ndim();
  if (v.ndim() > rest) {
    if (v.ndim() != rest + 1 || v.shape(0) != 1) return std::nullopt;
    v = squeeze(v, {0});
  }
  const Shape part(std::span(x.shape().begin() + mask.ndim(), static_cast<std::size_t>(rest)));
  if (broadcast(v.shape(), part) != part) return std::nullopt;
  Ints s = mask.shape().to_vector();
  s.insert(s.end(), static_cast<std::size_t>(rest), 1);
  return select(reshape(mask, s), v, x);
}

/// A value as it is written into a part of x.
Tensor fitted(const Operand& value, const Tensor& x, const Shape& s) {
  Tensor v = value.as(x.dtype());
  // NumPy lets a value have more leading dimensions than the part, if they are 1.
  while (v.ndim() > s.rank() && v.shape(0) == 1) v = squeeze(v, {0});
  UNDERTOW_CHECK(v.ndim() <= s.rank() && broadcast(v.shape(), s) == s, ShapeError,
                 "a value of shape {} cannot be assigned to a part of shape {}", v.shape().str(), s.str());
  return broadcast_to(v, s);
}

}  // namespace

Tensor index(const Tensor& x, const std::vector<Index>& items) { return read(x, plan_of(x, spelled_out(x, items))); }

Tensor set_index(const Tensor& x, const std::vector<Index>& items, const Operand& value) {
  if (const auto y = masked(x, items, value)) return *y;
  const Plan p = plan_of(x, spelled_out(x, items));
  if (p.axis < 0)
    return slice_update(x, reshape(fitted(value, x, Shape(p.shape)), p.sliced.to_vector()), p.begin, p.steps);
  // The places in x's memory that the index names, and one scatter to them.
  const Tensor places = read(reshape(arange(x.size()), x.shape().to_vector()), p);
  const Tensor flat = scatter(reshape(x, {-1}), reshape(places, {-1}), reshape(fitted(value, x, places.shape()), {-1}));
  return reshape(flat, x.shape().to_vector());
}

void write_index(const Tensor& x, const std::vector<Index>& items, const Operand& value) {
  if (std::any_of(items.begin(), items.end(), [](const Index& i) { return i.kind == Index::kTensor; }))
    return x.assign(set_index(x, items, value));
  const Plan p = plan_of(x, spelled_out(x, items));
  Tensor v = fitted(value, x, Shape(p.shape));
  if (v.size() == 0) return;
  if (v.impl()->storage == x.impl()->storage) v = v.clone();  // x[1:] = x[:-1]
  const ir::HostArray whole{x.data(), x.dtype(), x.shape()}, part{v.data(), v.dtype(), p.sliced};
  const ir::HostArray in[] = {whole, part};
  reference::slice_update(in, {&whole, 1}, {{"begin", p.begin}, {"steps", p.steps}}, nullptr);
}

}  // namespace undertow::ops
