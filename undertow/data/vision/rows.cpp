// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/vision/rows.h"

#include <cstring>
#include <memory>

#include "undertow/data/vision/kernels.h"
#include "undertow/tensor/convert.h"

namespace undertow::data::vision {
namespace {

template <typename T>
struct Rooms {
  Room<T> row, planes;
  Room<float> numbers;
};
template <typename T>
Rooms<T>& rooms() {
  thread_local Rooms<T> r;
  return r;
}

/// One step along n values. `a` and `b`: one value, or n of them.
template <typename T>
void step(const Arithmetic& step, const T* in, float* out, std::int64_t n, std::int64_t channel, bool along) {
  const float *a = step.a.data(), *b = step.b.data();
  const bool one = step.a.size() == 1;
  const bool scales = step.kind == Arithmetic::Kind::kScale;
  // in may be out: each value is read before it is written.
  if (along && !one) {
    if (scales)
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]) * a[i] + b[i];
    else
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) out[i] = (static_cast<float>(in[i]) - a[i]) / b[i];
    return;
  }
  const float p = a[one ? 0 : channel], q = b[one ? 0 : channel];
  if (scales)
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]) * p + q;
  else
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) out[i] = (static_cast<float>(in[i]) - p) / q;
}

template <typename F>
void convert_row(const F* in, std::int64_t n, DType dtype, std::byte* out) {
  dispatch(dtype, [&](auto tag) {
    using U = decltype(tag);
    U* to = reinterpret_cast<U*>(out);
    for (std::int64_t i = 0; i < n; ++i) to[i] = convert<F, U>(in[i]);
  });
}

}  // namespace

template <typename T>
Rows<T>::Rows(const Finish& finish, const Extent& e, std::byte* out)
    : finish_(finish), e_(e), out_(out), plain_(finish.plain(dtype_of<T>::v)), item_(size_of(finish.dtype)) {
  if (finish.planes || e.c == 1) return;
  for (const Arithmetic& step : finish.arithmetic) {
    Arithmetic& to = along_.emplace_back(Arithmetic{step.kind, {}, {}});
    const std::size_t n = step.a.size() == 1 ? 1 : static_cast<std::size_t>(e.row());
    for (std::size_t i = 0; i < n; ++i) {
      to.a.push_back(step.a[i % step.a.size()]);
      to.b.push_back(step.b[i % step.b.size()]);
    }
  }
}

template <typename T>
T* Rows<T>::row(std::int64_t) {
  return rooms<T>().row.of(e_.row() + kSlack);
}

template <typename T>
void Rows<T>::done(std::int64_t y) {
  take(y, rooms<T>().row.of(0));
}

template <typename T>
std::byte* Rows<T>::place(std::int64_t y, std::int64_t channel) const {
  if (finish_.flip_y) y = e_.h - 1 - y;
  const std::int64_t at = finish_.planes ? (channel * e_.h + y) * e_.w : y * e_.row();
  return out_ + static_cast<std::size_t>(at) * item_;
}

template <typename T>
void Rows<T>::take(std::int64_t y, const T* pixels) {
  if (plain_) {
    std::memcpy(place(y, 0), pixels, static_cast<std::size_t>(e_.row()) * item_);
    return;
  }
  if (!finish_.planes || e_.c == 1) return finish(pixels, e_.row(), 0, place(y, 0));
  T* planes = rooms<T>().planes.of(e_.row());
  const std::int64_t w = e_.w, c = e_.c;
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    if (c == 3) split_rgb(pixels, w, planes, planes + w, planes + 2 * w);
  } else if (c == 3) {
    for (std::int64_t i = 0; i < w; ++i) {
      planes[i] = pixels[3 * i];
      planes[w + i] = pixels[3 * i + 1];
      planes[2 * w + i] = pixels[3 * i + 2];
    }
  }
  if (c != 3)
    for (std::int64_t k = 0; k < c; ++k)
      for (std::int64_t i = 0; i < w; ++i) planes[k * w + i] = pixels[i * c + k];
  for (std::int64_t k = 0; k < c; ++k) finish(planes + k * w, w, k, place(y, k));
}

template <typename T>
void Rows<T>::finish(const T* in, std::int64_t n, std::int64_t channel, std::byte* out) {
  if (!finish_.as_float) {
    if (finish_.dtype == dtype_of<T>::v) std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(T));
    else convert_row(in, n, finish_.dtype, out);
    return;
  }
  const bool direct = finish_.dtype == DType::kFloat32;
  float* numbers = direct ? reinterpret_cast<float*>(out) : rooms<T>().numbers.of(n);
  const bool along = !along_.empty();
  const std::vector<Arithmetic>& steps = along ? along_ : finish_.arithmetic;
  if (steps.empty())
    for (std::int64_t i = 0; i < n; ++i) numbers[i] = static_cast<float>(in[i]);
  for (std::size_t k = 0; k < steps.size(); ++k) {
    if (k == 0) step(steps[k], in, numbers, n, channel, along);
    else step(steps[k], static_cast<const float*>(numbers), numbers, n, channel, along);
  }
  if (!direct) convert_row(static_cast<const float*>(numbers), n, finish_.dtype, out);
}

#define UNDERTOW_ROWS(T) template class Rows<T>;
UNDERTOW_EACH_DTYPE(UNDERTOW_ROWS)
#undef UNDERTOW_ROWS

}  // namespace undertow::data::vision
