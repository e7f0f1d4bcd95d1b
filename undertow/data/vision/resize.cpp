// SPDX-License-Identifier: Apache-2.0
// Resampling by rows and columns. Two families, see Rules:
//
//  * kArray computes what OpenCV's resize does: 2 or 4 taps a pixel (linear, cubic with a = -0.75) whose weights have
//    11 bits for uint8, or area averages;
//  * kPillow computes what Pillow's resize does: a filter that widens as the image shrinks, weights of 22 bits for
//    uint8, rounded to uint8 after the horizontal pass.
#include "undertow/data/vision/resize.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "undertow/data/vision/kernels.h"
#include "undertow/data/vision/taps.h"

namespace undertow::data::vision {
namespace {

/// `f` with the number of channels as a constant where it is 1 or 3, else 0.
template <typename F>
void with_channels(std::int64_t c, F f) {
  if (c == 3) f.template operator()<3>();
  else if (c == 1) f.template operator()<1>();
  else f.template operator()<0>();
}

/// Two passes of N taps, with a ring of rows that are done horizontally: along(y, line), then down(lines, weights,
/// out).
template <int N, typename Work, typename T, typename Weight, typename Along, typename Down>
void ring_passes(const FixedTaps& ty, const std::vector<Weight>& wy, std::int64_t row, Along along, Down down,
                 Rows<T>& out) {
  thread_local Room<Work> room;
  const std::int64_t room_for_one = row + kSlack;
  Work* ring = room.of(N * room_for_one);
  int held[N];
  std::fill(held, held + N, -1);
  const auto rows = static_cast<std::int64_t>(ty.index.size()) / N;
  for (std::int64_t y = 0; y < rows; ++y) {
    const Work* lines[N];
    for (int n = 0; n < N; ++n) {
      const int want = ty.index[static_cast<std::size_t>(y * N + n)];
      Work* line = ring + (want % N) * room_for_one;  // N successive rows fall on N places
      if (held[want % N] != want) {
        along(want, line);
        held[want % N] = want;
      }
      lines[n] = line;
    }
    down(lines, wy.data() + y * N, out.row(y));
    out.done(y);
  }
}

template <int N, typename T, typename Work, typename Weight>
auto along_taps(const View<T>& in, const FixedTaps& tx, const std::vector<Weight>& wx) {
  return [&](std::int64_t y, Work* line) {
    const T* src = in.row(y);
    with_channels(in.c, [&]<int kC>() {
      const std::int64_t c = kC ? kC : in.c, n = static_cast<std::int64_t>(tx.index.size()) / N;
      for (std::int64_t x = 0; x < n; ++x) {
        const int* at = tx.index.data() + x * N;
        const Weight* w = wx.data() + x * N;
        for (std::int64_t k = 0; k < c; ++k) {
          Work sum = static_cast<Work>(src[at[0] * c + k]) * static_cast<Work>(w[0]);
          for (int i = 1; i < N; ++i) sum += static_cast<Work>(src[at[i] * c + k]) * static_cast<Work>(w[i]);
          line[x * c + k] = sum;
        }
      }
    });
  };
}

std::vector<int> bits11(const std::vector<float>& w) {
  std::vector<int> out;
  out.reserve(w.size());
  for (const float v : w) out.push_back(static_cast<int>(std::nearbyint(v * 2048.f)));
  return out;
}

/// Linear for uint8: after the horizontal pass 15 bits are kept.
void linear_bytes(const View<std::uint8_t>& in, const FixedTaps& tx, const FixedTaps& ty, Rows<std::uint8_t>& out) {
  const std::vector<int> wx = bits11(tx.weight), wy = bits11(ty.weight);
  const auto n = static_cast<std::int64_t>(tx.index.size()) / 2, row = n * in.c;
  const auto down = [row](const std::int16_t* const* s, const int* w, std::uint8_t* o) {
    blend_rows(s[0], s[1], w[0], w[1], row, o);
  };
  if (in.c != 3 || in.w < 2) {
    ring_passes<2, std::int16_t>(
        ty, wy, row,
        [&](std::int64_t y, std::int16_t* line) {
          const std::uint8_t* src = in.row(y);
          for (std::int64_t x = 0; x < n; ++x) {
            const int *at = tx.index.data() + 2 * x, *w = wx.data() + 2 * x;
            for (std::int64_t k = 0; k < in.c; ++k)
              line[x * in.c + k] =
                  static_cast<std::int16_t>((src[at[0] * in.c + k] * w[0] + src[at[1] * in.c + k] * w[1]) >> 4);
          }
        },
        down, out);
    return;
  }
  // At an edge both places are the same pixel: it takes both weights, and its neighbour none.
  std::vector<int> at(static_cast<std::size_t>(n));
  std::vector<std::uint32_t> weights(at.size());
  for (std::size_t x = 0; x < at.size(); ++x) {
    const int a = tx.index[2 * x], b = tx.index[2 * x + 1];
    int low = wx[2 * x], high = wx[2 * x + 1];
    at[x] = a;
    if (a == b) {
      const bool right = a + 1 == in.w;
      at[x] = right ? a - 1 : a;
      low = right ? 0 : low + high;
      high = right ? wx[2 * x] + high : 0;
    }
    weights[x] = static_cast<std::uint32_t>(low) | (static_cast<std::uint32_t>(high) << 16);
  }
  ring_passes<2, std::int16_t>(
      ty, wy, row,
      [&](std::int64_t y, std::int16_t* line) { linear_rgb(in.row(y), in.w, at.data(), weights.data(), n, line); },
      down, out);
}

template <typename T, typename Work>
void array_passes(const View<T>& in, const FixedTaps& tx, const FixedTaps& ty, Rows<T>& out) {
  const std::int64_t row = static_cast<std::int64_t>(tx.index.size()) / tx.n * in.c;
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    if (tx.n == 2) return linear_bytes(in, tx, ty, out);
    const std::vector<int> wx = bits11(tx.weight), wy = bits11(ty.weight);
    ring_passes<4, int>(
        ty, wy, row, along_taps<4, T, int>(in, tx, wx),
        [row](const int* const* s, const int* w, std::uint8_t* o) {
          for (std::int64_t i = 0; i < row; ++i)
            o[i] = clamp8((s[0][i] * w[0] + s[1][i] * w[1] + s[2][i] * w[2] + s[3][i] * w[3] + (1 << 21)) >> 22);
        },
        out);
  } else {
    const auto down = [row, n = tx.n](const Work* const* s, const float* w, T* o) {
      for (std::int64_t i = 0; i < row; ++i) {
        Work sum = s[0][i] * static_cast<Work>(w[0]);
        for (int k = 1; k < n; ++k) sum += s[k][i] * static_cast<Work>(w[k]);
        o[i] = saturate<T>(sum);
      }
    };
    if (tx.n == 2) ring_passes<2, Work>(ty, ty.weight, row, along_taps<2, T, Work>(in, tx, tx.weight), down, out);
    else ring_passes<4, Work>(ty, ty.weight, row, along_taps<4, T, Work>(in, tx, tx.weight), down, out);
  }
}

template <typename Weight>
std::vector<Weight> weights(const Taps& t) {
  std::vector<Weight> out;
  out.reserve(t.weight.size());
  for (const double w : t.weight)
    if constexpr (std::is_integral_v<Weight>) out.push_back(static_cast<Weight>(std::round(w * (1 << 22))));
    else out.push_back(static_cast<Weight>(w));
  return out;
}

/// One pass along a row of pixels. `Sum`: int with 22 bits for uint8, or a float.
template <typename Sum, typename T, typename U>
void along_row(const T* in, std::int64_t c, U* out, const Taps& t, const std::vector<Sum>& w) {
  with_channels(c, [&]<int kC>() {
    const std::int64_t channels = kC ? kC : c;
    for (std::size_t x = 0; x < t.first.size(); ++x) {
      const T* s = in + t.first[x] * channels;
      const Sum* weight = w.data() + x * static_cast<std::size_t>(t.most);
      for (std::int64_t k = 0; k < channels; ++k) {
        Sum sum = std::is_integral_v<Sum> ? Sum(1 << 21) : Sum(0);
        for (int j = 0; j < t.count[x]; ++j) sum += static_cast<Sum>(s[j * channels + k]) * weight[j];
        if constexpr (std::is_integral_v<Sum>) *out++ = clamp8(sum >> 22);
        else *out++ = static_cast<U>(sum);
      }
    }
  });
}

/// One pass down the columns: the row of `n` values that is output y. `in`: the rows from `first` on.
template <typename Sum, typename T, typename U>
void down_columns(const T* in, std::int64_t first, std::int64_t n, U* out, const Taps& t, const std::vector<Sum>& w,
                  std::size_t y, std::vector<Sum>& sum) {
  sum.assign(static_cast<std::size_t>(n), std::is_integral_v<Sum> ? Sum(1 << 21) : Sum(0));
  for (int j = 0; j < t.count[y]; ++j) {
    const T* s = in + (t.first[y] + j - first) * n;
    const Sum weight = w[y * static_cast<std::size_t>(t.most) + static_cast<std::size_t>(j)];
    for (std::int64_t i = 0; i < n; ++i) sum[static_cast<std::size_t>(i)] += static_cast<Sum>(s[i]) * weight;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<Sum>) out[i] = clamp8(sum[static_cast<std::size_t>(i)] >> 22);
    else out[i] = saturate<U>(sum[static_cast<std::size_t>(i)]);
  }
}

/// A pass along the rows (`along` null: the columns `columns` as they are), then one down.
template <typename Sum, typename Between, typename T>
void tap_passes(const View<T>& in, const Taps* along, const Wanted& columns, const Taps& down, Rows<T>& out) {
  thread_local Room<Between> room;
  const std::int64_t c = in.c, n = columns.count * c;
  std::int64_t low = in.h, high = 0;
  for (std::size_t y = 0; y < down.first.size(); ++y) {
    low = std::min<std::int64_t>(low, down.first[y]);
    high = std::max<std::int64_t>(high, down.first[y] + down.count[y]);
  }
  Between* between = room.of(std::max<std::int64_t>(high - low, 0) * n);
  const std::vector<Sum> wx = along ? weights<Sum>(*along) : std::vector<Sum>(), wy = weights<Sum>(down);
  for (std::int64_t y = low; y < high; ++y) {
    Between* to = between + (y - low) * n;
    if (along) along_row(in.row(y), c, to, *along, wx);
    else
      for (std::int64_t x = 0; x < columns.count; ++x)
        for (std::int64_t k = 0; k < c; ++k) *to++ = static_cast<Between>(in.row(y)[columns.at(x) * c + k]);
  }
  std::vector<Sum> sum;
  for (std::size_t y = 0; y < down.first.size(); ++y) {
    const auto at = static_cast<std::int64_t>(y);
    down_columns(between, low, n, out.row(at), down, wy, y, sum);
    out.done(at);
  }
}

/// OpenCV's averages of 2 x 2 bytes.
void halve(const View<std::uint8_t>& in, const Wanted& columns, const Wanted& rows, Rows<std::uint8_t>& out) {
  const std::int64_t c = in.c;
  for (std::int64_t y = 0; y < rows.count; ++y) {
    const std::uint8_t *a = in.row(2 * rows.at(y)), *b = a + in.stride;
    std::uint8_t* o = out.row(y);
    for (std::int64_t x = 0; x < columns.count; ++x)
      for (std::int64_t k = 0; k < c; ++k) {
        const std::int64_t at = 2 * columns.at(x) * c + k;
        *o++ = static_cast<std::uint8_t>((a[at] + a[at + c] + b[at] + b[at + c] + 2) >> 2);
      }
    out.done(y);
  }
}

template <typename T>
void nearest(const View<T>& in, const Resizing& r, const Wanted& columns, const Wanted& rows, Rows<T>& out) {
  const auto xs = nearest_taps(in.w, r.w, r.rules, columns), ys = nearest_taps(in.h, r.h, r.rules, rows);
  for (std::int64_t y = 0; y < rows.count; ++y) {
    const T* src = in.row(ys[static_cast<std::size_t>(y)]);
    T* o = out.row(y);
    with_channels(in.c, [&]<int kC>() {
      const std::int64_t c = kC ? kC : in.c;
      for (const std::int64_t x : xs)
        for (std::int64_t k = 0; k < c; ++k) *o++ = src[x * c + k];
    });
    out.done(y);
  }
}

template <typename T>
inline constexpr bool kInterpolates =
    std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint16_t> ||
    std::is_same_v<T, std::int16_t> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, float> ||
    std::is_same_v<T, double>;

}  // namespace

void check_resize(const char* op, const Extent& e, DType dtype, const Resizing& r) {
  UNDERTOW_CHECK(e.h > 0 && e.w > 0 && r.h > 0 && r.w > 0, DataError, "{}: cannot resize shape {} to {} x {}", op,
                 e.shape().str(), r.h, r.w);
  UNDERTOW_CHECK(r.inter != Inter::kAntialias || r.rules == Rules::kPillow, DataError,
                 "{}: Inter.ANTIALIAS is for PIL images; arrays take NEAREST, LINEAR, CUBIC, AREA and PILCUBIC", op);
  UNDERTOW_CHECK(r.inter != Inter::kArea || r.rules == Rules::kArray, DataError,
                 "{}: Inter.AREA is for arrays; PIL images take NEAREST, LINEAR, CUBIC and ANTIALIAS", op);
  if (r.inter == Inter::kNearest || dtype == DType::kFloat16) return;
  const bool works = dispatch(dtype, [](auto tag) { return kInterpolates<decltype(tag)>; });
  UNDERTOW_CHECK(works, DataError,
                 "{} interpolates uint8, int8, uint16, int16, int32, float16, float32 and float64; got {}", op,
                 numpy_name_of(dtype));
}

template <typename T>
void resize(const View<T>& in, const Resizing& r, const Rect& part, bool reversed, Rows<T>& out) {
  const Wanted columns{part.left, part.width, reversed}, rows{part.top, part.height, false};
  if (r.inter == Inter::kNearest) return nearest(in, r, columns, rows, out);
  if constexpr (kInterpolates<T>) {
    // float32 holds integers of up to 16 bits; wider ones are computed in float64.
    using Work = std::conditional_t<(sizeof(T) > 2 && !std::is_same_v<T, float>), double, float>;
    constexpr bool kBytes = std::is_same_v<T, std::uint8_t>;
    if (r.rules == Rules::kPillow || r.inter == Inter::kPilCubic) {
      using Sum = std::conditional_t<kBytes, int, Work>;
      using Between = std::conditional_t<kBytes, T, Work>;
      const Taps along = in.w == r.w ? Taps() : pillow_taps(in.w, r.w, r.inter, columns);
      if (in.w != r.w && in.h == r.h && std::is_same_v<T, Between>) {
        const std::vector<Sum> w = weights<Sum>(along);
        for (std::int64_t y = 0; y < rows.count; ++y) {
          along_row(in.row(rows.at(y)), in.c, out.row(y), along, w);
          out.done(y);
        }
        return;
      }
      return tap_passes<Sum, Between>(in, in.w == r.w ? nullptr : &along, columns,
                                      pillow_taps(in.h, r.h, r.inter, rows), out);
    }
    const bool shrinks = r.w <= in.w && r.h <= in.h;
    // OpenCV takes the average of 2 x 2 pixels for linear too when it halves.
    const bool halves = in.w == 2 * r.w && in.h == 2 * r.h;
    if ((r.inter == Inter::kArea && shrinks) || (r.inter == Inter::kLinear && halves)) {
      if constexpr (kBytes)
        if (halves) return halve(in, columns, rows, out);
      const Taps along = area_taps(in.w, r.w, columns);
      return tap_passes<Work, Work>(in, &along, columns, area_taps(in.h, r.h, rows), out);
    }
    array_passes<T, Work>(in, array_taps(in.w, r.w, r.inter, columns), array_taps(in.h, r.h, r.inter, rows), out);
  }
}

#define UNDERTOW_RESIZE(T) template void resize(const View<T>&, const Resizing&, const Rect&, bool, Rows<T>&);
UNDERTOW_EACH_DTYPE(UNDERTOW_RESIZE)
#undef UNDERTOW_RESIZE

}  // namespace undertow::data::vision
