// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "undertow/base/philox.h"
#include "undertow/undertow.h"

namespace undertow::testing {

/// Every test runs on both devices.
class OnDevice : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    set_context({.mode = GRAPH_MODE, .device_target = GetParam()});
    set_seed(1);
  }
};
#define UNDERTOW_ON_DEVICES(suite)                                                \
  INSTANTIATE_TEST_SUITE_P(Devices, suite, ::testing::Values("reference", "CPU"), \
                           [](const auto& info) { return std::string(info.param); })

inline std::vector<float> random_floats(std::size_t n, std::uint64_t seed, double low = -1, double high = 1) {
  PhiloxStream s(seed, 77);
  std::vector<float> out(n);
  for (float& v : out) v = static_cast<float>(low + (high - low) * s.uniform64());
  return out;
}

inline Tensor random_tensor(const Shape& shape, std::uint64_t seed, double low = -1, double high = 1) {
  return Tensor(random_floats(static_cast<std::size_t>(shape.numel()), seed, low, high), shape);
}

inline std::vector<double> values(const Tensor& t) {
  const Tensor d = t.to(DType::kFloat64);
  return {d.data_as<double>(), d.data_as<double>() + d.size()};
}

inline void expect_near(const Tensor& got, const std::vector<double>& want, double tolerance,
                        const std::string& what = "") {
  const std::vector<double> v = values(got);
  ASSERT_EQ(v.size(), want.size()) << what;
  for (std::size_t i = 0; i < v.size(); ++i)
    ASSERT_NEAR(v[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << what << " at " << i;
}

/// Runs `f`, which must throw `E`, and returns the message.
template <typename E>
std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}
template <typename E>
void expect_error(const std::function<void()>& f, const std::vector<std::string>& parts) {
  const std::string m = message_of<E>(f);
  for (const std::string& part : parts) EXPECT_NE(m.find(part), std::string::npos) << "'" << part << "' not in: " << m;
}

}  // namespace undertow::testing
