// SPDX-License-Identifier: Apache-2.0
// Random programs, forward and backward: the fused CPU program against the unfused reference program.
#include <gtest/gtest.h>

#include <cmath>

#include "undertow/base/philox.h"
#include "undertow/ops/ops.h"
#include "undertow/runtime/context.h"
#include "undertow/runtime/session.h"

namespace undertow {
namespace {

/// Makes the same program for the same seed, whatever device runs it.
class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed, 1) {}

  std::vector<Tensor> build(runtime::Trace& trace, const std::vector<Tensor>& in) {
    values_ = in;
    const int n = 4 + static_cast<int>(random_.below(14));
    for (int i = 0; i < n; ++i) values_.push_back(step());
    Tensor loss = ops::reduce_mean(ops::square(values_.back()));
    for (std::size_t i = in.size(); i + 1 < values_.size(); i += 3)
      loss = loss + ops::reduce_mean(ops::tanh(values_[i]));
    std::vector<Tensor> out = trace.gradients(loss, in);
    out.insert(out.begin(), loss);
    out.push_back(values_.back());
    return out;
  }

 private:
  const Tensor& pick() { return values_[random_.below(values_.size())]; }

  Tensor step() {
    const Tensor x = pick();
    switch (random_.below(12)) {
      case 0: return ops::tanh(x);
      case 1: return ops::sigmoid(x) * 2.0;
      case 2: return ops::relu(x - 0.1);
      case 3: return ops::softmax(x, -1);
      case 4: return ops::exp(ops::minimum(x, 1.0)) - x;
      case 5: return mean_removed(x);
      case 6: {
        const Tensor y = ops::transpose(x);
        return ops::transpose(ops::tanh(y * 0.5) + ops::reduce_max(y, {0}, true));
      }
      case 7: return join(x, pick());
      case 8: return join(x, ops::reduce_sum(pick(), {0}, true) * 0.1);
      case 9: return ops::concat({x, ops::neg(x)}, 0);
      case 10: return ops::index(x, {{ops::Index::kSlice, 0, std::nullopt, std::nullopt, -1}});
      default: return ops::matmul(x, ops::transpose(x)) * 0.05;
    }
  }

  Tensor mean_removed(const Tensor& x) {
    const ops::Axes axes{static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(x.ndim())))};
    const Tensor centred = x - ops::reduce_mean(x, axes, true);
    return centred * ops::rsqrt(ops::reduce_mean(ops::square(centred), axes, true) + 0.5);
  }

  /// Adds, where the shapes broadcast.
  Tensor join(const Tensor& x, const Tensor& y) {
    for (int d = 1; d <= std::min(x.ndim(), y.ndim()); ++d)
      if (x.shape(-d) != y.shape(-d) && x.shape(-d) != 1 && y.shape(-d) != 1) return x * 0.7;
    return x * 0.5 + ops::mul(y, 0.5);
  }

  PhiloxStream random_;
  std::vector<Tensor> values_;
};

Tensor uniform(PhiloxStream& r, const Shape& shape) {
  Tensor t(DType::kFloat32, shape);
  for (std::int64_t i = 0; i < t.size(); ++i) t.data_as<float>()[i] = 2 * r.uniform() - 1;
  return t;
}

TEST(RandomGraphs, FusedEqualsReference) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    PhiloxStream r(seed, 2);
    const std::int64_t rows = 1 + static_cast<std::int64_t>(r.below(9)),
                       columns = 1 + static_cast<std::int64_t>(r.below(37));
    const std::vector<Tensor> in{uniform(r, {rows, columns}), uniform(r, {1, columns}), uniform(r, {rows, columns})};
    std::vector<std::vector<Tensor>> results;
    for (const char* device : {"reference", "CPU"}) {
      set_context({.mode = GRAPH_MODE, .device_target = device});
      runtime::StepFunction step(
          "random",
          [&](runtime::Trace& trace, const std::vector<Tensor>& columns_in) {
            return Program(seed).build(trace, columns_in);
          },
          true);
      results.push_back(runtime::run_once(step, in));
    }
    ASSERT_EQ(results[0].size(), results[1].size());
    for (std::size_t k = 0; k < results[0].size(); ++k) {
      const Tensor &a = results[0][k], &b = results[1][k];
      ASSERT_EQ(a.shape(), b.shape()) << "seed " << seed << ", output " << k;
      double scale = 1;
      for (std::int64_t i = 0; i < a.size(); ++i) scale = std::max(scale, std::abs(double(a.data_as<float>()[i])));
      for (std::int64_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a.data_as<float>()[i], b.data_as<float>()[i], 2e-4 * scale)
            << "seed " << seed << ", output " << k << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace undertow
