// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "helpers.h"

namespace undertow {
namespace {

using common::Init;
using common::initializer;
using testing::values;

struct Moments {
  double mean, deviation, low, high;
};
Moments moments(const Init& init, const Shape& shape) {
  const std::vector<double> v = values(initializer(init, shape));
  Moments m{0, 0, *std::min_element(v.begin(), v.end()), *std::max_element(v.begin(), v.end())};
  for (const double x : v) m.mean += x / static_cast<double>(v.size());
  for (const double x : v) m.deviation += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

TEST(Initializer, Moments) {
  set_seed(5);
  const Shape conv{64, 32, 5, 5};  // fan_in 800, fan_out 1600
  const auto near = [](double got, double want) { EXPECT_NEAR(got, want, 0.02 * want); };

  Moments m = moments(common::Normal(0.02, 1), conv);
  near(m.deviation, 0.02);
  EXPECT_NEAR(m.mean, 1, 1e-3);
  m = moments(common::Uniform(0.07), conv);
  near(m.deviation, 0.07 / std::sqrt(3));
  EXPECT_GE(m.low, -0.07);
  EXPECT_LE(m.high, 0.07);
  m = moments(common::TruncatedNormal(0.5), conv);
  EXPECT_GE(m.low, -1.0);
  EXPECT_LE(m.high, 1.0);
  near(m.deviation, 0.5 * 0.8796);
  m = moments(common::HeUniform(std::sqrt(5.0)), conv);
  near(m.high, 1 / std::sqrt(800));
  near(m.deviation, 1 / std::sqrt(800 * 3));
  near(moments(common::HeNormal(0, "fan_out", "relu"), conv).deviation, std::sqrt(2.0 / 1600));
  near(moments(common::HeNormal(0.5), conv).deviation, std::sqrt(2.0 / 1.25 / 800));
  near(moments(common::XavierUniform(2), conv).high, 2 * std::sqrt(6.0 / 2400));
  near(moments(common::XavierNormal(), conv).deviation, std::sqrt(2.0 / 2400));
}

TEST(Initializer, Constants) {
  EXPECT_EQ(values(initializer("ones", Shape{2})), (std::vector<double>{1, 1}));
  EXPECT_EQ(values(initializer("ZEROS", Shape{2})), (std::vector<double>{0, 0}));
  EXPECT_EQ(values(initializer(2.5, Shape{1})), (std::vector<double>{2.5}));
  EXPECT_EQ(values(initializer(common::Constant(-1), Shape{1}, DType::kInt32)), (std::vector<double>{-1}));
  EXPECT_EQ(values(initializer("identity", Shape{2, 3})), (std::vector<double>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(initializer("he_uniform", Shape{4, 4}, DType::kFloat16).dtype(), DType::kFloat16);
}

TEST(Initializer, SeedDecidesAndNothingElse) {
  set_seed(3);
  const auto a = values(initializer("normal", Shape{100})), b = values(initializer("normal", Shape{100}));
  EXPECT_NE(a, b);
  set_seed(4);
  EXPECT_NE(values(initializer("normal", Shape{100})), a);
  set_seed(3);
  EXPECT_EQ(values(initializer("normal", Shape{100})), a);
  set_seed(3);  // setting the same seed again starts again
  EXPECT_EQ(values(initializer("normal", Shape{100})), a);
}

TEST(Initializer, TensorIsUsedAsItIs) {
  const Tensor w({1.f, 2.f});
  EXPECT_EQ(values(initializer(w, Shape{2})), (std::vector<double>{1, 2}));
  testing::expect_error<ShapeError>([&] { initializer(w, Shape{3}); }, {"(2,)", "(3,)"});
  testing::expect_error<ShapeError>([&] { nn::Dense(3, 1, {.weight_init = w}); }, {"(2,)", "(1, 3)"});
}

TEST(Initializer, Errors) {
  testing::expect_error<ValueError>([] { initializer("bogus", Shape{2}); }, {"bogus", "xavier_uniform"});
  testing::expect_error<ValueError>([] { initializer("he_normal", Shape{2}); }, {"(2,)"});
  testing::expect_error<ValueError>([] { common::HeNormal(0, "fan"); }, {"fan_in"});
}

}  // namespace
}  // namespace undertow
