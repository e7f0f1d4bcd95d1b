// SPDX-License-Identifier: Apache-2.0
// train/initializer.h: how a parameter gets its first values.
//
//   nn::Dense(8, 4, {.weight_init = common::Normal(0.02), .bias_init = "zeros"});
//   Tensor w = common::initializer("he_uniform", Shape{4, 8});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
    kSparse,           // a sigma, b part of the rows that is zero
    kDirac,            // a groups
    kOrthogonal,       // a gain
    kVarianceScaling,  // a scale; fan; spread
    kTensor,
    kFunction,
  };

  Init() = default;
  /// Throws ValueError naming the known names.
  Init(const char* name) : Init(std::string(name)) {}
  Init(const std::string& name);
  template <typename T>
    requires std::is_arithmetic_v<T>
  Init(T value) : kind_(Kind::kConstant), a_(static_cast<double>(value)) {}
  Init(Tensor value) : kind_(Kind::kTensor), tensor_(std::move(value)) {}
  enum class Fan : std::uint8_t { kIn, kOut, kAverage };
  enum class Spread : std::uint8_t { kTruncatedNormal, kNormal, kUniform };
  Init(Kind kind, double a, double b = 0, double low = 0, double high = 0, Fan fan = Fan::kIn, Spread spread = {})
      : kind_(kind), fan_(fan), spread_(spread), a_(a), b_(b), low_(low), high_(high) {}
  /// Calls the function with a tensor to fill: the one asked for, or a float32 one for half types.
  explicit Init(std::function<void(const Tensor&)> fill)
      : kind_(Kind::kFunction), fill_(std::make_shared<std::function<void(const Tensor&)>>(std::move(fill))) {}

  Kind kind() const { return kind_; }
  const Tensor& tensor() const { return tensor_; }  ///< of kTensor
  bool is_set() const { return kind_ != Kind::kUnset; }
  const Init& or_else(const Init& other) const { return is_set() ? *this : other; }

 private:
  friend Tensor initializer(const Init&, const Shape&, DType);
  Kind kind_ = Kind::kUnset;
  Fan fan_ = Fan::kIn;
  Spread spread_ = Spread::kTruncatedNormal;
  double a_ = 0, b_ = 0, low_ = 0, high_ = 0;
  Tensor tensor_;
  std::shared_ptr<std::function<void(const Tensor&)>> fill_;
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

/// Rank 2: normal, with ceil(sparsity * rows) zeros at random places of each column.
Init Sparse(double sparsity, double sigma = 0.01);
/// Rank 3 to 5: the identity of a convolution, in each of `groups` equal parts of the outputs.
Init Dirac(std::int64_t groups = 1);
/// Orthonormal rows or columns, whichever are fewer, times gain (Saxe et al., 2013).
Init Orthogonal(double gain = 1);
/// Variance scale / fan, with mode "fan_in", "fan_out" or "fan_avg", from "truncated_normal", "untruncated_normal" or
/// "uniform".
Init VarianceScaling(double scale = 1, const std::string& mode = "fan_in",
                     const std::string& distribution = "truncated_normal");

/// Numbers of inputs and outputs of a weight [out, in, field...]; throws ValueError below 2 dimensions.
std::pair<std::int64_t, std::int64_t> fan_in_and_fan_out(const Shape& shape);
/// What keeps the variance through a nonlinearity: "linear", "sigmoid", "conv2d", ...: 1; "tanh": 5/3; "relu": sqrt(2);
/// "leaky_relu": sqrt(2 / (1 + slope^2)).
double gain_of(const std::string& nonlinearity, double negative_slope = 0.01);

/// A new tensor. Draws depend on the global seed and on how many were made since it was set, on nothing else. A Tensor
/// must have the shape asked for (ShapeError) and is converted to `dtype`.
Tensor initializer(const Init& init, const Shape& shape, DType dtype = DType::kFloat32);

}  // namespace undertow::common
