// SPDX-License-Identifier: Apache-2.0
// train/initializer.h: how a parameter gets its first values.
//
//   nn::Dense(8, 4, {.weight_init = common::Normal(0.02), .bias_init = "zeros"});
//   Tensor w = common::initializer("he_uniform", Shape{4, 8});
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "undertow/base/dtype.h"
#include "undertow/tensor/tensor.h"

namespace undertow::common {

/// A recipe. Made from a name ("normal", "zeros", ...; case and underscores do not matter), a number (a constant), a
/// Tensor (used as it is), or one of the functions below. The default is "the layer's own".
class Init {
 public:
  enum class Kind : std::uint8_t {
    kUnset,
    kConstant,
    kNormal,           // a sigma, b mean
    kTruncatedNormal,  // a sigma, b mean, low, high (in units of sigma around mean)
    kUniform,          // in [-a, a)
    kHeUniform,        // a gain; fan_out
    kHeNormal,
    kXavierUniform,  // a gain
    kXavierNormal,
    kIdentity,
    kTensor,
  };

  Init() = default;
  /// Throws ValueError naming the known names.
  Init(const char* name) : Init(std::string(name)) {}
  Init(const std::string& name);
  template <typename T>
    requires std::is_arithmetic_v<T>
  Init(T value) : kind_(Kind::kConstant), a_(static_cast<double>(value)) {}
  Init(Tensor value) : kind_(Kind::kTensor), tensor_(std::move(value)) {}
  Init(Kind kind, double a, double b = 0, double low = 0, double high = 0, bool fan_out = false)
      : kind_(kind), fan_out_(fan_out), a_(a), b_(b), low_(low), high_(high) {}

  Kind kind() const { return kind_; }
  bool is_set() const { return kind_ != Kind::kUnset; }
  const Init& or_else(const Init& other) const { return is_set() ? *this : other; }

 private:
  friend Tensor initializer(const Init&, const Shape&, DType);
  Kind kind_ = Kind::kUnset;
  bool fan_out_ = false;
  double a_ = 0, b_ = 0, low_ = 0, high_ = 0;
  Tensor tensor_;
};

Init Zero();
Init One();
Init Constant(double value);
Init Identity();  ///< rank 2 only
Init Normal(double sigma = 0.01, double mean = 0.0);
Init Uniform(double scale = 0.07);  ///< U(-scale, scale)
/// Normal, drawn again outside [mean + a * sigma, mean + b * sigma].
Init TruncatedNormal(double sigma = 0.01, double mean = 0.0, double a = -2.0, double b = 2.0);
/// mode: "fan_in" or "fan_out". nonlinearity: "leaky_relu", "relu", "tanh", "sigmoid", "linear".
Init HeUniform(double negative_slope = 0, const std::string& mode = "fan_in",
               const std::string& nonlinearity = "leaky_relu");
Init HeNormal(double negative_slope = 0, const std::string& mode = "fan_in",
              const std::string& nonlinearity = "leaky_relu");
Init XavierUniform(double gain = 1);
Init XavierNormal(double gain = 1);

/// A new tensor. Draws depend on the global seed and on how many were made since it was set, on nothing else. A Tensor
/// must have the shape asked for (ShapeError) and is converted to `dtype`.
Tensor initializer(const Init& init, const Shape& shape, DType dtype = DType::kFloat32);

}  // namespace undertow::common
