// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/reference/detail.h"
#include "undertow/ops/reference/reference.h"

namespace undertow::ops::reference {
namespace {

/// Row-major strides of the batch dims of `s`, aligned to `batch` from the right; 0 where it is broadcast.
std::vector<std::int64_t> batch_strides(const Shape& s, const Shape& batch) {
  std::vector<std::int64_t> strides(batch.size(), 0);
  const auto dense = contiguous_strides(s);
  for (int d = s.rank() - 3, b = batch.rank() - 1; d >= 0; --d, --b) strides[b] = s[d] == 1 ? 0 : dense[d];
  return strides;
}

}  // namespace

void matmul(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  const Shape &a = in[0].shape, &b = in[1].shape, &y = out[0].shape;
  const bool ta = attrs.flag("transpose_a"), tb = attrs.flag("transpose_b");
  const std::int64_t m = y[y.rank() - 2], n = y.back(), k = a[a.rank() - (ta ? 2 : 1)];
  const std::int64_t a_row = ta ? 1 : k, a_col = ta ? m : 1, b_row = tb ? 1 : n, b_col = tb ? k : 1;
  const Shape batch(std::span(y.begin(), y.size() - 2));
  std::vector<std::int64_t> b_offsets;
  walk(batch, batch_strides(b, batch), 0, [&](std::int64_t, std::int64_t at) { b_offsets.push_back(at); });
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    walk(batch, batch_strides(a, batch), 0, [&](std::int64_t i, std::int64_t a_offset) {
      const T* pa = in[0].as<T>() + a_offset;
      const T* pb = in[1].as<T>() + b_offsets[static_cast<std::size_t>(i)];
      T* py = out[0].as<T>() + i * m * n;
      std::vector<Acc<T>> row(static_cast<std::size_t>(n));
      for (std::int64_t r = 0; r < m; ++r) {
        std::fill(row.begin(), row.end(), Acc<T>{});
        for (std::int64_t l = 0; l < k; ++l) {
          const Acc<T> v = widen(pa[r * a_row + l * a_col]);
          for (std::int64_t c = 0; c < n; ++c) row[c] += v * widen(pb[l * b_row + c * b_col]);
        }
        store_narrowed<T>(row, py + r * n);
      }
    });
  });
}

}  // namespace undertow::ops::reference
