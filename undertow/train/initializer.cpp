// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/initializer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "undertow/base/check.h"
#include "undertow/base/philox.h"
#include "undertow/runtime/trace.h"

namespace undertow::common {
namespace {

struct Named {
  std::string_view name;
  Init (*make)();
};
constexpr std::array<Named, 17> kNamed{{
    {"zeros", [] { return Zero(); }},
    {"zero", [] { return Zero(); }},
    {"ones", [] { return One(); }},
    {"one", [] { return One(); }},
    {"normal", [] { return Normal(); }},
    {"uniform", [] { return Uniform(); }},
    {"truncatednormal", [] { return TruncatedNormal(); }},
    {"heuniform", [] { return HeUniform(); }},
    {"henormal", [] { return HeNormal(); }},
    {"xavieruniform", [] { return XavierUniform(); }},
    {"xaviernormal", [] { return XavierNormal(); }},
    {"glorotuniform", [] { return XavierUniform(); }},
    {"glorotnormal", [] { return XavierNormal(); }},
    {"identity", [] { return Identity(); }},
    {"eye", [] { return Identity(); }},
    {"orthogonal", [] { return Orthogonal(); }},
    {"variancescaling", [] { return VarianceScaling(); }},
}};

Init::Fan fan_mode(const std::string& mode) {
  UNDERTOW_CHECK(mode == "fan_in" || mode == "fan_out", ValueError, "mode must be 'fan_in' or 'fan_out' but is '{}'",
                 mode);
  return mode == "fan_out" ? Init::Fan::kOut : Init::Fan::kIn;
}

double fan_of(const Shape& shape, Init::Fan fan) {
  const auto [in, out] = fan_in_and_fan_out(shape);
  if (fan == Init::Fan::kAverage) return static_cast<double>(in + out) / 2;
  return static_cast<double>(fan == Init::Fan::kOut ? out : in);
}

/// Two independent standard normal numbers at a time (Box, Muller, 1958).
class NormalStream {
 public:
  explicit NormalStream(PhiloxStream& bits) : bits_(bits) {}
  double next() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2.0 * std::log(1.0 - bits_.uniform64()));
    const double angle = 2.0 * std::numbers::pi * bits_.uniform64();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  PhiloxStream& bits_;
  double spare_ = 0;
  bool has_spare_ = false;
};

/// Draws since the seed was set.
std::atomic<std::uint64_t> draws{0};
[[maybe_unused]] const bool counted_from_seed = (runtime::on_set_seed([](std::uint64_t) { draws = 0; }), true);

/// A stream of its own for each draw.
PhiloxStream next_stream() {
  constexpr std::uint64_t kInitializers = 0x9D8C31E4A7B25F6Bull;  // apart from the keys of random ops and shuffles
  return PhiloxStream(runtime::seed() ^ kInitializers, draws++);
}

template <typename F>
void fill(const Tensor& t, F&& next) {
  dispatch(t.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* out = t.data_as<T>();
    for (std::int64_t i = 0, n = t.size(); i < n; ++i) {
      if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) out[i] = T(static_cast<float>(next()));
      else out[i] = static_cast<T>(next());
    }
  });
}

void sparse(const Tensor& t, double sigma, double sparsity, NormalStream& normal, PhiloxStream& bits) {
  UNDERTOW_CHECK(t.ndim() == 2, ValueError, "Sparse needs 2 dimensions; the shape is {}", t.shape().str());
  const std::int64_t rows = t.shape(0), columns = t.shape(1);
  const auto zeros = static_cast<std::int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  std::vector<char> kept(static_cast<std::size_t>(rows * columns), 1);
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  for (std::int64_t c = 0; c < columns; ++c) {
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t i = 0; i < std::min(zeros, rows); ++i) {  // the first `zeros` of a shuffle
      const auto j = i + static_cast<std::int64_t>(bits.uniform64() * static_cast<double>(rows - i));
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(j)]);
      kept[static_cast<std::size_t>(order[static_cast<std::size_t>(i)] * columns + c)] = 0;
    }
  }
  std::size_t at = 0;
  fill(t, [&] {
    const double v = sigma * normal.next();
    return kept[at++] ? v : 0.0;
  });
}

Tensor dirac(const Shape& shape, std::int64_t groups, DType dtype) {
  UNDERTOW_CHECK(shape.rank() >= 3 && shape.rank() <= 5, ValueError, "Dirac needs 3 to 5 dimensions; the shape is {}",
                 shape.str());
  UNDERTOW_CHECK(shape[0] % groups == 0, ValueError, "Dirac: groups = {} does not divide the {} outputs of {}", groups,
                 shape[0], shape.str());
  const std::int64_t per_group = shape[0] / groups, inner = shape.numel() / std::max<std::int64_t>(shape[0], 1);
  const auto strides = contiguous_strides(shape);
  std::int64_t centre = 0;
  for (int d = 2; d < shape.rank(); ++d) centre += shape[d] / 2 * strides[static_cast<std::size_t>(d)];
  const Tensor t(dtype, shape);
  std::int64_t i = 0;
  fill(t, [&] {
    const std::int64_t channel = i / inner % per_group, rest = i % inner;
    ++i;
    return channel < shape[1] && rest == channel * strides[1] + centre ? 1.0 : 0.0;
  });
  return t;
}

/// Gram-Schmidt, each vector twice: as orthogonal as the numbers allow.
void orthogonal(const Tensor& t, double gain, NormalStream& normal) {
  UNDERTOW_CHECK(t.ndim() >= 2, ValueError, "Orthogonal needs at least 2 dimensions; the shape is {}", t.shape().str());
  const std::int64_t rows = t.shape(0), columns = t.size() / rows;
  const bool by_row = rows <= columns;
  const auto count = static_cast<std::size_t>(by_row ? rows : columns);
  const auto length = static_cast<std::size_t>(by_row ? columns : rows);
  std::vector<std::vector<double>> v(count, std::vector<double>(length));
  for (std::size_t i = 0; i < count; ++i) {
    double norm = 0;
    while (norm < 1e-6) {
      for (double& x : v[i]) x = normal.next();
      for (int pass = 0; pass < 2; ++pass)
        for (std::size_t j = 0; j < i; ++j) {
          double dot = 0;
          for (std::size_t k = 0; k < length; ++k) dot += v[i][k] * v[j][k];
          for (std::size_t k = 0; k < length; ++k) v[i][k] -= dot * v[j][k];
        }
      norm = 0;
      for (const double x : v[i]) norm += x * x;
      norm = std::sqrt(norm);
    }
    for (double& x : v[i]) x /= norm;
  }
  std::int64_t i = 0;
  fill(t, [&] {
    const auto r = static_cast<std::size_t>(i / columns), c = static_cast<std::size_t>(i % columns);
    ++i;
    return gain * (by_row ? v[r][c] : v[c][r]);
  });
}

}  // namespace

Init::Init(const std::string& name) {
  std::string key;
  for (const char c : name)
    if (c != '_') key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Named& n : kNamed) {
    if (n.name == key) {
      *this = n.make();
      return;
    }
  }
  throw ValueError(
      fmt::format("initializer '{}' is not known; use zeros, ones, normal, uniform, truncated_normal, "
                  "he_uniform, he_normal, xavier_uniform, xavier_normal or identity",
                  name));
}

Init Zero() { return 0.0; }
Init One() { return 1.0; }
Init Constant(double value) { return value; }
Init Identity() { return Init(Init::Kind::kIdentity, 0); }
Init Normal(double sigma, double mean) { return Init(Init::Kind::kNormal, sigma, mean); }
Init Uniform(double scale) { return Init(Init::Kind::kUniform, scale); }
Init TruncatedNormal(double sigma, double mean, double a, double b) {
  UNDERTOW_CHECK(a < b, ValueError, "TruncatedNormal: the interval from a = {} to b = {} is empty", a, b);
  UNDERTOW_CHECK(a <= 4 && b >= -4, ValueError,
                 "TruncatedNormal: hardly any draw lies between a = {} and b = {} (they count sigmas from the mean)", a,
                 b);
  return Init(Init::Kind::kTruncatedNormal, sigma, mean, a, b);
}
Init HeUniform(double negative_slope, const std::string& mode, const std::string& nonlinearity) {
  return Init(Init::Kind::kHeUniform, gain_of(nonlinearity, negative_slope), 0, 0, 0, fan_mode(mode));
}
Init HeNormal(double negative_slope, const std::string& mode, const std::string& nonlinearity) {
  return Init(Init::Kind::kHeNormal, gain_of(nonlinearity, negative_slope), 0, 0, 0, fan_mode(mode));
}
Init XavierUniform(double gain) { return Init(Init::Kind::kXavierUniform, gain); }
Init XavierNormal(double gain) { return Init(Init::Kind::kXavierNormal, gain); }

Init Sparse(double sparsity, double sigma) {
  UNDERTOW_CHECK(sparsity >= 0 && sparsity <= 1, ValueError, "Sparse: sparsity must be from 0 to 1 but is {}",
                 sparsity);
  return Init(Init::Kind::kSparse, sigma, sparsity);
}
Init Dirac(std::int64_t groups) {
  UNDERTOW_CHECK(groups > 0, ValueError, "Dirac: groups must be positive but is {}", groups);
  return Init(Init::Kind::kDirac, static_cast<double>(groups));
}
Init Orthogonal(double gain) { return Init(Init::Kind::kOrthogonal, gain); }
Init VarianceScaling(double scale, const std::string& mode, const std::string& distribution) {
  UNDERTOW_CHECK(scale > 0, ValueError, "VarianceScaling: scale must be positive but is {}", scale);
  UNDERTOW_CHECK(mode == "fan_in" || mode == "fan_out" || mode == "fan_avg", ValueError,
                 "VarianceScaling: mode must be 'fan_in', 'fan_out' or 'fan_avg' but is '{}'", mode);
  UNDERTOW_CHECK(
      distribution == "truncated_normal" || distribution == "untruncated_normal" || distribution == "uniform",
      ValueError,
      "VarianceScaling: distribution must be 'truncated_normal', 'untruncated_normal' or 'uniform' but is '{}'",
      distribution);
  using Fan = Init::Fan;
  using Spread = Init::Spread;
  const Fan fan = mode == "fan_in" ? Fan::kIn : mode == "fan_out" ? Fan::kOut : Fan::kAverage;
  const Spread spread = distribution == "uniform"            ? Spread::kUniform
                        : distribution == "truncated_normal" ? Spread::kTruncatedNormal
                                                             : Spread::kNormal;
  return Init(Init::Kind::kVarianceScaling, scale, 0, 0, 0, fan, spread);
}

std::pair<std::int64_t, std::int64_t> fan_in_and_fan_out(const Shape& shape) {
  UNDERTOW_CHECK(shape.rank() >= 2, ValueError,
                 "this initializer scales by the number of inputs and needs at least 2 dimensions; the shape is {}",
                 shape.str());
  std::int64_t field = 1;
  for (int i = 2; i < shape.rank(); ++i) field *= shape[i];
  return {shape[1] * field, shape[0] * field};
}

double gain_of(const std::string& nonlinearity, double negative_slope) {
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1.0 + negative_slope * negative_slope));
  if (nonlinearity == "relu") return std::numbers::sqrt2;
  if (nonlinearity == "tanh") return 5.0 / 3.0;
  if (nonlinearity == "sigmoid" || nonlinearity == "linear" || nonlinearity.starts_with("conv")) return 1.0;
  throw ValueError(
      fmt::format("nonlinearity '{}' is not known; use leaky_relu, relu, tanh, sigmoid or linear", nonlinearity));
}

Tensor initializer(const Init& init, const Shape& shape, DType dtype) {
  using Kind = Init::Kind;
  switch (init.kind_) {
    case Kind::kUnset: throw ValueError("no initializer was given");
    case Kind::kTensor:
      UNDERTOW_CHECK(init.tensor_.shape() == shape, ShapeError,
                     "the tensor given as initial value has shape {} but the parameter has shape {}",
                     init.tensor_.shape().str(), shape.str());
      return init.tensor_.to(dtype);
    case Kind::kConstant: return Tensor::full(shape, init.a_, dtype);
    case Kind::kIdentity: {
      UNDERTOW_CHECK(shape.rank() == 2, ValueError, "Identity needs 2 dimensions; the shape is {}", shape.str());
      const Tensor t(dtype, shape);
      std::int64_t i = 0;
      fill(t, [&] { return i / shape[1] == i % shape[1] ? (++i, 1.0) : (++i, 0.0); });
      return t;
    }
    case Kind::kDirac: return dirac(shape, static_cast<std::int64_t>(init.a_), dtype);
    case Kind::kFunction: {
      const Tensor filled = Tensor::zeros(shape, is_half(dtype) ? DType::kFloat32 : dtype);
      (*init.fill_)(filled);
      return filled.to(dtype);
    }
    default: break;
  }

  const Tensor t(dtype, shape);
  if (t.size() == 0) return t;
  PhiloxStream bits = next_stream();
  NormalStream normal(bits);
  const auto uniform_in = [&](double bound) {
    fill(t, [&bits, bound] { return (2.0 * bits.uniform64() - 1.0) * bound; });
  };
  const auto normal_with = [&](double sigma, double mean) {
    fill(t, [&normal, sigma, mean] { return mean + sigma * normal.next(); });
  };
  const auto fan = [&] { return fan_of(shape, init.fan_); };
  const auto fan_sum = [&] { return 2 * fan_of(shape, Init::Fan::kAverage); };
  const auto truncated = [&](double sigma, double mean, double low, double high) {
    fill(t, [&normal, sigma, mean, low, high] {
      double z = normal.next();
      while (z < low || z > high) z = normal.next();
      return mean + sigma * z;
    });
  };
  switch (init.kind_) {
    case Kind::kNormal: normal_with(init.a_, init.b_); break;
    case Kind::kUniform: uniform_in(init.a_); break;
    case Kind::kTruncatedNormal: truncated(init.a_, init.b_, init.low_, init.high_); break;
    case Kind::kSparse: sparse(t, init.a_, init.b_, normal, bits); break;
    case Kind::kOrthogonal: orthogonal(t, init.a_, normal); break;
    case Kind::kVarianceScaling: {
      const double variance = init.a_ / std::max(1.0, fan());
      // The part of a normal distribution within two sigmas has this standard deviation.
      constexpr double kTruncated = 0.8796256610342398;
      if (init.spread_ == Init::Spread::kUniform) uniform_in(std::sqrt(3 * variance));
      else if (init.spread_ == Init::Spread::kNormal) normal_with(std::sqrt(variance), 0);
      else truncated(std::sqrt(variance) / kTruncated, 0, -2, 2);
      break;
    }
    case Kind::kHeUniform: uniform_in(init.a_ * std::sqrt(3.0 / fan())); break;
    case Kind::kHeNormal: normal_with(init.a_ / std::sqrt(fan()), 0); break;
    case Kind::kXavierUniform: uniform_in(init.a_ * std::sqrt(6.0 / fan_sum())); break;
    default: normal_with(init.a_ * std::sqrt(2.0 / fan_sum()), 0); break;
  }
  return t;
}

}  // namespace undertow::common
