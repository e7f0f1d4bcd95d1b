// SPDX-License-Identifier: Apache-2.0
// The rules are those of NumPy's array2string with its default options (numpy/_core/arrayprint.py); the tests hold
// strings that NumPy made.
#include "undertow/tensor/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>

namespace undertow {
namespace {

constexpr std::int64_t kThreshold = 1000, kEdge = 3;
constexpr std::size_t kLine = 75;
constexpr int kPrecision = 8;

/// A float16 value, with more room.
struct Half {
  Half() = default;
  explicit Half(double x) : v(static_cast<float>(x)) {}
  operator double() const { return v; }
  float v = 0;
};

std::string printed(const char* format, int precision, double v) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, format, precision, v);
  return buffer;
}

/// The fewest digits that read back as the same float16.
std::string shortest_half(float v, std::chars_format form) {
  for (int digits = 0; digits < 8; ++digits) {
    const std::string s = printed("%.*e", digits, v);
    if (static_cast<float>(float16(std::stof(s))) != v) continue;
    if (form == std::chars_format::scientific) return s;
    const int exponent = std::stoi(s.substr(s.find('e') + 1));
    return printed("%.*f", std::max(0, digits - exponent), v);
  }
  return printed("%.*f", kPrecision, v);
}

/// The fewest digits that read back as the same number.
template <typename T>
std::string shortest(T v, std::chars_format form) {
  if constexpr (std::is_same_v<T, Half>) {
    return shortest_half(v.v, form);
  } else {
    char buffer[512];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, v, form).ptr;
    return std::string(buffer, end);
  }
}

/// A number in parts: "-12" "5" "-05" of -12.5e-05; no exponent in the positional form.
struct Digits {
  std::string whole, fraction, exponent;
};

Digits split(const std::string& s) {
  Digits d;
  const std::size_t e = std::min(s.find('e'), s.size()), dot = std::min(s.find('.'), e);
  d.whole = s.substr(0, dot);
  if (dot < e) d.fraction = s.substr(dot + 1, e - dot - 1);
  if (e < s.size()) d.exponent = s.substr(e + 1);
  return d;
}

template <typename T>
Digits digits_of(T v, bool scientific) {
  Digits d = split(shortest(v, scientific ? std::chars_format::scientific : std::chars_format::fixed));
  if (d.fraction.size() > kPrecision)
    d = split(printed(scientific ? "%.*e" : "%.*f", kPrecision, static_cast<double>(v)));
  while (!d.fraction.empty() && d.fraction.back() == '0') d.fraction.pop_back();
  return d;
}

std::string padded(const std::string& s, std::size_t width) {
  return s.size() < width ? std::string(width - s.size(), ' ') + s : s;
}

std::string not_finite(double v) { return std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf"; }

/// One width and form for all floats of a column.
template <typename T>
class FloatFormat {
 public:
  explicit FloatFormat(const std::vector<T>& shown) {
    T low{}, high{};
    bool any = false, infinite = false, negative = false;
    for (const T v : shown) {
      const auto x = static_cast<double>(v);
      if (!std::isfinite(x)) infinite = true, negative |= !std::isnan(x) && x < 0;
      if (!std::isfinite(x) || x == 0) continue;
      const T a = x < 0 ? T(-x) : v;
      if (!any || a < low) low = a;
      if (!any || a > high) high = a;
      any = true;
    }
    if (any)
      scientific_ = static_cast<double>(high) >= 1e8 || static_cast<double>(low) < 1e-4 || ratio(high, low) > 1000;
    for (const T v : shown) {
      if (!std::isfinite(static_cast<double>(v))) continue;
      const Digits d = digits_of(v, scientific_);
      left_ = std::max(left_, d.whole.size());
      fraction_ = std::max(fraction_, d.fraction.size());
      if (!d.exponent.empty()) exponent_ = std::max(exponent_, d.exponent.size() - 1);
    }
    right_ = scientific_ ? exponent_ + 2 + fraction_ : fraction_;
    if (infinite) {
      const std::size_t offset = right_ + 1, longest = negative ? 4 : 3;
      if (longest > offset) left_ = std::max(left_, longest - offset);
    }
  }

  std::string operator()(T v) const {
    const auto x = static_cast<double>(v);
    if (!std::isfinite(x)) return padded(not_finite(x), left_ + right_ + 1);
    const Digits d = digits_of(v, scientific_);
    const std::string s = padded(d.whole, left_) + "." + d.fraction;
    if (!scientific_) return s + std::string(fraction_ - d.fraction.size(), ' ');
    return s + std::string(fraction_ - d.fraction.size(), '0') + "e" + d.exponent[0] +
           std::string(exponent_ + 1 - d.exponent.size(), '0') + d.exponent.substr(1);
  }

 private:
  static double ratio(T high, T low) {
    if constexpr (std::is_same_v<T, double>) return high / low;
    else return static_cast<double>(static_cast<float>(high) / static_cast<float>(low));
  }
  bool scientific_ = false;
  std::size_t left_ = 0, right_ = 0, fraction_ = 0, exponent_ = 0;
};

template <typename T>
std::string number(T v) {
  if constexpr (std::is_same_v<T, bool>) return v ? "True" : "False";
  else return std::to_string(v);
}

template <typename T>
class IntegerFormat {
 public:
  explicit IntegerFormat(const std::vector<T>& shown) {
    for (const T v : shown) width_ = std::max(width_, number(v).size());
    if (std::is_same_v<T, bool>) width_ = 5;
  }
  std::string operator()(T v) const { return padded(number(v), width_); }

 private:
  std::size_t width_ = 0;
};

template <typename T>
constexpr bool is_float = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Half>;

/// A number that stands alone.
template <typename T>
std::string scalar(T v) {
  if constexpr (!is_float<T>) {
    return number(v);
  } else {
    const auto x = static_cast<double>(v);
    if (!std::isfinite(x)) return not_finite(x);
    if (x != 0 && (std::abs(x) < 1e-4 || std::abs(x) >= 1e16)) return shortest(v, std::chars_format::scientific);
    const std::string s = shortest(v, std::chars_format::fixed);
    return s.find('.') == std::string::npos ? s + ".0" : s;
  }
}

/// Nested brackets around words.
class Writer {
 public:
  Writer(const Shape& shape, std::function<std::string(std::int64_t)> word)
      : shape_(shape), dense_(contiguous_strides(shape)), word_(std::move(word)), cuts_(shape.numel() > kThreshold) {}

  /// Calls f(i) for the indices along an axis that are shown, and f(-1) where some are left out.
  template <typename F>
  void each(int axis, F f) const {
    const std::int64_t n = shape_[axis];
    const bool cut = cuts_ && 2 * kEdge < n;
    for (std::int64_t i = 0; i < (cut ? kEdge : n); ++i) f(i);
    if (!cut) return;
    f(-1);
    for (std::int64_t i = n - kEdge; i < n; ++i) f(i);
  }

  std::string text(int axis, std::int64_t at, const std::string& indent, std::size_t width) const {
    std::string s;
    if (axis + 1 == shape_.rank()) {
      std::string line = indent;
      bool first = true;
      each(axis, [&](std::int64_t i) {
        if (!first) line += ' ';
        first = false;
        const std::string word = i < 0 ? "..." : word_(at + i);
        if (line.size() + word.size() > width - 1 && line.size() > indent.size()) {
          s += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
          line = indent;
        }
        line += word;
      });
      s += line;
    } else {
      const std::string gap(static_cast<std::size_t>(shape_.rank() - axis - 1), '\n');
      each(axis, [&](std::int64_t i) {
        if (!s.empty()) s += gap;
        s += indent +
             (i < 0 ? "..." : text(axis + 1, at + i * dense_[static_cast<std::size_t>(axis)], indent + " ", width - 1));
      });
    }
    return "[" + s.substr(indent.size()) + "]";
  }

  /// Positions of the elements that are shown.
  void shown(int axis, std::int64_t at, std::vector<std::int64_t>& out) const {
    if (axis == shape_.rank()) return out.push_back(at);
    each(axis, [&](std::int64_t i) {
      if (i >= 0) shown(axis + 1, at + i * dense_[static_cast<std::size_t>(axis)], out);
    });
  }

 private:
  const Shape& shape_;
  std::vector<std::int64_t> dense_;
  std::function<std::string(std::int64_t)> word_;
  bool cuts_;
};

template <typename T>
std::string text(const T* data, const Shape& shape) {
  if (shape.rank() == 0) return scalar(data[0]);
  if (shape.numel() == 0) return "[]";
  std::vector<std::int64_t> at;
  Writer(shape, {}).shown(0, 0, at);
  std::vector<T> shown;
  for (const auto i : at) shown.push_back(data[i]);
  const std::conditional_t<is_float<T>, FloatFormat<T>, IntegerFormat<T>> format(shown);
  return Writer(shape, [&](std::int64_t i) { return format(data[i]); }).text(0, 0, " ", kLine);
}

}  // namespace

std::string text_of(const Tensor& tensor) {
  const Tensor t = tensor.dtype() == DType::kBFloat16 ? tensor.to(DType::kFloat32) : tensor;
  const void* data = t.data();
  return dispatch(t.dtype(), [&](auto tag) -> std::string {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, bfloat16>) {
      return "";
    } else if constexpr (std::is_same_v<T, float16>) {
      std::vector<Half> wide;
      for (std::int64_t i = 0; i < t.size(); ++i)
        wide.emplace_back(static_cast<double>(static_cast<float>(static_cast<const float16*>(data)[i])));
      return text(wide.data(), t.shape());
    } else {
      return text(static_cast<const T*>(data), t.shape());
    }
  });
}

}  // namespace undertow
