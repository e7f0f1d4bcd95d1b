// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/arrange.h"

#include <algorithm>
#include <numeric>

#include "undertow/base/check.h"
#include "undertow/ops/scatter.h"

namespace undertow::ops {

using Ints = std::vector<std::int64_t>;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// x[..., begin : begin + extent, ...]
Tensor part(const Tensor& x, int axis, std::int64_t begin, std::int64_t extent) {
  Ints first(at(x.ndim()), 0);
  first[at(axis)] = begin;
  Shape s = x.shape();
  s[axis] = extent;
  return slice(x, first, Ints(first.size(), 1), s);
}

}  // namespace

Tensor tile(const Tensor& x, Ints reps) {
  // Each dimension becomes (repeats, extent), is broadcast, and joined again.
  Ints wide, target, joined;
  while (reps.size() < x.shape().size()) reps.insert(reps.begin(), 1);
  const std::size_t lead = reps.size() - x.shape().size();
  for (std::size_t i = 0; i < reps.size(); ++i) {
    UNDERTOW_CHECK(reps[i] >= 0, ValueError, "tile: a number of repetitions cannot be negative, got {}", reps[i]);
    const std::int64_t n = i < lead ? 1 : x.shape(static_cast<int>(i - lead));
    if (reps[i] != 1) wide.push_back(1), target.push_back(reps[i]);
    wide.push_back(n);
    target.push_back(n);
    joined.push_back(reps[i] * n);
  }
  if (target.size() > Shape::kMaxRank) {  // one dimension at a time
    Ints s(lead, 1);
    for (const auto n : x.shape()) s.push_back(n);
    Tensor y = reshape(x, s);
    for (std::size_t i = 0; i < reps.size(); ++i)
      if (reps[i] != 1)
        y = reps[i] == 0 ? part(y, static_cast<int>(i), 0, 0)
                         : concat(std::vector<Tensor>(at(reps[i]), y), static_cast<std::int64_t>(i));
    return y;
  }
  return reshape(broadcast_to(reshape(x, wide), Shape(target)), joined);
}

Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> axis) {
  UNDERTOW_CHECK(repeats >= 0, ValueError, "repeat_interleave: repeats cannot be negative, got {}", repeats);
  if (!axis) return repeat_interleave(reshape(x, {-1}), repeats, 0);
  const int a = normalize_axis(*axis, x.ndim(), "repeat_interleave");
  Shape wide;
  Ints joined = x.shape().to_vector();
  for (int d = 0; d < x.ndim(); ++d) {
    wide.push_back(x.shape(d));
    if (d == a) wide.push_back(repeats);
  }
  joined[at(a)] *= repeats;
  return reshape(broadcast_to(expand_dims(x, a + 1), wide), joined);
}

Tensor repeat_interleave(const Tensor& x, const Ints& repeats, std::int64_t axis) {
  const int a = normalize_axis(axis, x.ndim(), "repeat_interleave");
  if (repeats.size() == 1) return repeat_interleave(x, repeats[0], a);
  UNDERTOW_CHECK(static_cast<std::int64_t>(repeats.size()) == x.shape(a), ValueError,
                 "repeat_interleave: {} repeats for axis {} of shape {}", repeats.size(), a, x.shape().str());
  Ints index;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    UNDERTOW_CHECK(repeats[i] >= 0, ValueError, "repeat_interleave: repeats cannot be negative, got {}", repeats[i]);
    index.insert(index.end(), at(repeats[i]), static_cast<std::int64_t>(i));
  }
  return gather(x, Tensor(index), a);
}

Tensor flip(const Tensor& x, Axes axes) {
  Ints begin(at(x.ndim()), 0), steps(at(x.ndim()), 1);
  for (auto& a : axes) {
    a = normalize_axis(a, x.ndim(), "flip");
    UNDERTOW_CHECK(steps[at(a)] == 1, ValueError, "flip: axis {} is given twice", a);
    begin[at(a)] = std::max<std::int64_t>(x.shape(static_cast<int>(a)) - 1, 0);
    steps[at(a)] = -1;
  }
  return axes.empty() || x.size() == 0 ? x : slice(x, begin, steps, x.shape());
}

Tensor roll(const Tensor& x, const Ints& shifts, const Axes& axes) {
  if (axes.empty()) {
    UNDERTOW_CHECK(shifts.size() == 1, ValueError, "roll: {} shifts without axes", shifts.size());
    return reshape(roll(reshape(x, {-1}), shifts, {0}), x.shape().to_vector());
  }
  UNDERTOW_CHECK(shifts.size() == axes.size() || shifts.size() == 1, ValueError, "roll: {} shifts for {} axes",
                 shifts.size(), axes.size());
  Tensor y = x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int a = normalize_axis(axes[i], x.ndim(), "roll");
    const std::int64_t n = x.shape(a);
    if (n == 0) continue;
    const std::int64_t by = ((shifts[shifts.size() == 1 ? 0 : i] % n) + n) % n;
    if (by != 0) y = concat({part(y, a, n - by, by), part(y, a, 0, n - by)}, a);
  }
  return y;
}

Tensor rot90(const Tensor& x, std::int64_t k, const Axes& axes) {
  UNDERTOW_CHECK(axes.size() == 2, ValueError, "rot90: needs two axes, got {}", axes.size());
  const int a = normalize_axis(axes[0], x.ndim(), "rot90"), b = normalize_axis(axes[1], x.ndim(), "rot90");
  UNDERTOW_CHECK(a != b, ValueError, "rot90: the two axes are the same, {}", a);
  switch (((k % 4) + 4) % 4) {
    case 0: return x;
    case 1: return swapaxes(flip(x, {b}), a, b);
    case 2: return flip(x, {a, b});
    default: return flip(swapaxes(x, a, b), {b});
  }
}

Tensor moveaxis(const Tensor& x, Axes source, Axes destination) {
  UNDERTOW_CHECK(source.size() == destination.size(), ValueError, "moveaxis: {} axes to {} places", source.size(),
                 destination.size());
  Ints perm(at(x.ndim()), -1);
  std::vector<bool> moved(perm.size(), false);
  for (std::size_t i = 0; i < source.size(); ++i) {
    const std::int64_t s = normalize_axis(source[i], x.ndim(), "moveaxis"),
                       d = normalize_axis(destination[i], x.ndim(), "moveaxis");
    UNDERTOW_CHECK(!moved[at(s)] && perm[at(d)] < 0, ValueError, "moveaxis: an axis is given twice");
    moved[at(s)] = true;
    perm[at(d)] = s;
  }
  std::int64_t next = 0;
  for (auto& p : perm) {
    if (p >= 0) continue;
    while (moved[at(next)]) ++next;
    p = next++;
  }
  return x.ndim() == 0 ? x : transpose(x, perm);
}

Tensor expand(const Tensor& x, Ints shape) {
  UNDERTOW_CHECK(shape.size() >= x.shape().size(), ShapeError, "broadcast_to: shape {} cannot become [{}]",
                 x.shape().str(), fmt::join(shape, ", "));
  const std::size_t lead = shape.size() - x.shape().size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != -1) continue;
    UNDERTOW_CHECK(i >= lead, ShapeError, "broadcast_to: -1 keeps an extent, but dimension {} of [{}] is a new one", i,
                   fmt::join(shape, ", "));
    shape[i] = x.shape(static_cast<int>(i - lead));
  }
  return broadcast_to(x, Shape(shape));
}

Tensor at_least(const Tensor& x, int rank) {
  Ints s = x.shape().to_vector();
  if (rank == 3 && s.size() == 2) return expand_dims(x, 2);
  if (rank == 3 && s.size() == 1) return reshape(x, {1, s[0], 1});
  while (static_cast<int>(s.size()) < rank) s.insert(s.begin(), 1);
  return reshape(x, s);
}

std::vector<Tensor> split_sizes(const Tensor& x, const Ints& sizes, std::int64_t axis) {
  const int a = normalize_axis(axis, x.ndim(), "split: axis");
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  UNDERTOW_CHECK(total == x.shape(a) && std::all_of(sizes.begin(), sizes.end(), [](auto n) { return n >= 0; }),
                 ValueError, "split: pieces of {} do not make up dimension {} of shape {}", fmt::join(sizes, " + "), a,
                 x.shape().str());
  std::vector<Tensor> out;
  std::int64_t begin = 0;
  for (const std::int64_t n : sizes) {
    out.push_back(part(x, a, begin, n));
    begin += n;
  }
  return out;
}

std::vector<Tensor> split_size(const Tensor& x, std::int64_t size, std::int64_t axis) {
  UNDERTOW_CHECK(size > 0, ValueError, "split: the size of a piece must be positive, got {}", size);
  const std::int64_t n = x.shape(normalize_axis(axis, x.ndim(), "split: axis"));
  Ints sizes(at(n / size), size);
  if (n % size || n == 0) sizes.push_back(n % size);
  return split_sizes(x, sizes, axis);
}

std::vector<Tensor> tensor_split(const Tensor& x, std::int64_t sections, std::int64_t axis) {
  UNDERTOW_CHECK(sections > 0, ValueError, "tensor_split: the number of sections must be positive, got {}", sections);
  const std::int64_t n = x.shape(normalize_axis(axis, x.ndim(), "tensor_split: axis"));
  Ints sizes(at(sections), n / sections);
  for (std::int64_t i = 0; i < n % sections; ++i) ++sizes[at(i)];
  return split_sizes(x, sizes, axis);
}

std::vector<Tensor> tensor_split(const Tensor& x, const Ints& indices, std::int64_t axis) {
  const int a = normalize_axis(axis, x.ndim(), "tensor_split: axis");
  const std::int64_t n = x.shape(a);
  std::vector<Tensor> out;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i <= indices.size(); ++i) {
    std::int64_t end = i == indices.size() ? n : indices[i] < 0 ? indices[i] + n : indices[i];
    end = std::clamp<std::int64_t>(end, 0, n);
    out.push_back(part(x, a, std::min(begin, end), std::max<std::int64_t>(end - begin, 0)));
    begin = end;
  }
  return out;
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis) {
  UNDERTOW_CHECK(chunks > 0, ValueError, "chunk: the number of chunks must be positive, got {}", chunks);
  const std::int64_t n = x.shape(normalize_axis(axis, x.ndim(), "chunk: axis"));
  return split_size(x, std::max<std::int64_t>(1, (n + chunks - 1) / chunks), axis);
}

std::vector<Tensor> unstack(const Tensor& x, std::int64_t axis) {
  const int a = normalize_axis(axis, x.ndim(), "unstack: axis");
  std::vector<Tensor> out;
  for (std::int64_t i = 0; i < x.shape(a); ++i) out.push_back(squeeze(part(x, a, i, 1), {a}));
  return out;
}

Tensor narrow(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t length) {
  const int a = normalize_axis(axis, x.ndim(), "narrow: axis");
  const std::int64_t n = x.shape(a), begin = start < 0 ? start + n : start;
  UNDERTOW_CHECK(begin >= 0 && length >= 0 && begin + length <= n, ValueError,
                 "narrow: {} elements from {} do not lie within dimension {} of shape {}", length, start, a,
                 x.shape().str());
  return part(x, a, begin, length);
}

Tensor select_at(const Tensor& x, std::int64_t axis, std::int64_t index) {
  const int a = normalize_axis(axis, x.ndim(), "select: axis");
  const std::int64_t n = x.shape(a), i = index < 0 ? index + n : index;
  UNDERTOW_CHECK(i >= 0 && i < n, IndexError, "index {} is out of range for axis {} with {} elements", index, a, n);
  return squeeze(part(x, a, i, 1), {a});
}

namespace {
std::vector<Tensor> all_at_least(const std::vector<Tensor>& xs, int rank) {
  std::vector<Tensor> out;
  for (const auto& x : xs) out.push_back(at_least(x, rank));
  return out;
}
}  // namespace

Tensor hstack(const std::vector<Tensor>& xs) {
  const auto in = all_at_least(xs, 1);
  return concat(in, !in.empty() && in[0].ndim() == 1 ? 0 : 1);
}
Tensor vstack(const std::vector<Tensor>& xs) { return concat(all_at_least(xs, 2), 0); }
Tensor dstack(const std::vector<Tensor>& xs) { return concat(all_at_least(xs, 3), 2); }
Tensor column_stack(const std::vector<Tensor>& xs) {
  std::vector<Tensor> columns;
  for (const auto& x : xs) columns.push_back(x.ndim() < 2 ? reshape(x, {x.size(), 1}) : x);
  return concat(columns, 1);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& xs, const std::string& indexing) {
  UNDERTOW_CHECK(indexing == "xy" || indexing == "ij", ValueError, "meshgrid: indexing must be 'xy' or 'ij', got '{}'",
                 indexing);
  const bool swap = indexing == "xy" && xs.size() > 1;
  const auto axis_of = [&](std::size_t i) { return swap && i < 2 ? 1 - i : i; };
  Ints target(xs.size(), 1);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    UNDERTOW_CHECK(xs[i].ndim() <= 1, ShapeError, "meshgrid: tensor {} must be 1-d, its shape is {}", i,
                   xs[i].shape().str());
    target[axis_of(i)] = xs[i].size();
  }
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    Ints s(xs.size(), 1);
    s[axis_of(i)] = xs[i].size();
    out.push_back(broadcast_to(reshape(xs[i], s), Shape(target)));
  }
  return out;
}

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& xs) {
  Shape s;
  for (const auto& x : xs) s = broadcast(s, x.shape());
  std::vector<Tensor> out;
  for (const auto& x : xs) out.push_back(broadcast_to(x, s));
  return out;
}

Tensor cartesian_prod(const std::vector<Tensor>& xs) {
  std::vector<Tensor> columns = meshgrid(xs, "ij");
  for (auto& c : columns) c = reshape(c, {-1});
  return columns.size() == 1 ? columns[0] : stack(columns, 1);
}

Tensor diff(const Tensor& x, std::int64_t n, std::int64_t axis) {
  UNDERTOW_CHECK(n >= 0, ValueError, "diff: n cannot be negative, got {}", n);
  const int a = normalize_axis(axis, x.ndim(), "diff");
  Tensor y = x;
  for (std::int64_t i = 0; i < n && y.shape(a) > 0; ++i) {
    const std::int64_t rest = y.shape(a) - 1;
    const Tensor high = part(y, a, 1, rest), low = part(y, a, 0, rest);
    y = y.dtype() == DType::kBool ? logical_xor(high, low) : sub(high, low);
  }
  return y;
}

Tensor reverse_sequence(const Tensor& x, const Tensor& seq_lengths, std::int64_t seq_axis, std::int64_t batch_axis) {
  const int s = normalize_axis(seq_axis, x.ndim(), "reverse_sequence: seq_dim"),
            b = normalize_axis(batch_axis, x.ndim(), "reverse_sequence: batch_dim");
  UNDERTOW_CHECK(s != b, ValueError, "reverse_sequence: seq_dim and batch_dim are both {}", s);
  UNDERTOW_CHECK(seq_lengths.ndim() == 1 && seq_lengths.size() == x.shape(b), ShapeError,
                 "reverse_sequence: seq_lengths must have shape ({},), got {}", x.shape(b), seq_lengths.shape().str());
  Ints per_row(at(x.ndim()), 1);
  per_row[at(b)] = x.shape(b);
  const Tensor length = reshape(cast(seq_lengths, DType::kInt64), per_row);
  const Tensor i = iota(x.shape(), s, DType::kInt64);
  return gather_elements(x, select(less(i, length), sub(sub(length, 1), i), i), s);
}

Tensor strided_slice(const Tensor& x, const Ints& begin, const Ints& end, const Ints& strides,
                     const StridedSliceMasks& masks) {
  UNDERTOW_CHECK(begin.size() == end.size() && begin.size() == strides.size(), ValueError,
                 "strided_slice: begin, end and strides have {}, {} and {} entries", begin.size(), end.size(),
                 strides.size());
  std::vector<Index> items;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    const auto set = [i](std::int64_t mask) { return (mask >> i & 1) != 0; };
    Index item{};
    if (set(masks.ellipsis)) {
      item.kind = Index::kEllipsis;
    } else if (set(masks.new_axis)) {
      item.kind = Index::kNewAxis;
    } else if (set(masks.shrink_axis)) {
      item.kind = Index::kInteger;
      item.value = begin[i];
    } else {
      item.kind = Index::kSlice;
      if (!set(masks.begin)) item.begin = begin[i];
      if (!set(masks.end)) item.end = end[i];
      item.step = strides[i];
    }
    items.push_back(item);
  }
  return index(x, items);
}

}  // namespace undertow::ops
