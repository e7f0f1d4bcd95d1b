// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/initializer.h"

#include <array>
#include <atomic>
#include <cctype>
#include <cmath>
#include <numbers>

#include "undertow/base/check.h"
#include "undertow/base/philox.h"
#include "undertow/runtime/trace.h"

namespace undertow::common {
namespace {

struct Named {
  std::string_view name;
  Init (*make)();
};
constexpr std::array<Named, 15> kNamed{{
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
}};

double gain_of(const std::string& nonlinearity, double negative_slope) {
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1.0 + negative_slope * negative_slope));
  if (nonlinearity == "relu") return std::numbers::sqrt2;
  if (nonlinearity == "tanh") return 5.0 / 3.0;
  if (nonlinearity == "sigmoid" || nonlinearity == "linear") return 1.0;
  throw ValueError(
      fmt::format("nonlinearity '{}' is not known; use leaky_relu, relu, tanh, sigmoid or linear", nonlinearity));
}

bool is_fan_out(const std::string& mode) {
  UNDERTOW_CHECK(mode == "fan_in" || mode == "fan_out", ValueError, "mode must be 'fan_in' or 'fan_out' but is '{}'",
                 mode);
  return mode == "fan_out";
}

struct Fans {
  double in, out;
};
Fans fans_of(const Shape& shape) {
  UNDERTOW_CHECK(shape.rank() >= 2, ValueError,
                 "this initializer scales by the number of inputs and needs at least 2 dimensions; the shape is {}",
                 shape.str());
  double field = 1;
  for (int i = 2; i < shape.rank(); ++i) field *= static_cast<double>(shape[i]);
  return {static_cast<double>(shape[1]) * field, static_cast<double>(shape[0]) * field};
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
  return Init(Init::Kind::kHeUniform, gain_of(nonlinearity, negative_slope), 0, 0, 0, is_fan_out(mode));
}
Init HeNormal(double negative_slope, const std::string& mode, const std::string& nonlinearity) {
  return Init(Init::Kind::kHeNormal, gain_of(nonlinearity, negative_slope), 0, 0, 0, is_fan_out(mode));
}
Init XavierUniform(double gain) { return Init(Init::Kind::kXavierUniform, gain); }
Init XavierNormal(double gain) { return Init(Init::Kind::kXavierNormal, gain); }

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
  const auto fan = [&] {
    const Fans f = fans_of(shape);
    return init.fan_out_ ? f.out : f.in;
  };
  const auto fan_sum = [&] {
    const Fans f = fans_of(shape);
    return f.in + f.out;
  };
  switch (init.kind_) {
    case Kind::kNormal: normal_with(init.a_, init.b_); break;
    case Kind::kUniform: uniform_in(init.a_); break;
    case Kind::kTruncatedNormal:
      fill(t, [&] {
        double z = normal.next();
        while (z < init.low_ || z > init.high_) z = normal.next();
        return init.b_ + init.a_ * z;
      });
      break;
    case Kind::kHeUniform: uniform_in(init.a_ * std::sqrt(3.0 / fan())); break;
    case Kind::kHeNormal: normal_with(init.a_ / std::sqrt(fan()), 0); break;
    case Kind::kXavierUniform: uniform_in(init.a_ * std::sqrt(6.0 / fan_sum())); break;
    default: normal_with(init.a_ * std::sqrt(2.0 / fan_sum()), 0); break;
  }
  return t;
}

}  // namespace undertow::common
