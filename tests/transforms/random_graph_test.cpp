// SPDX-License-Identifier: Apache-2.0
// Random programs, forward and backward: the fused CPU program against the unfused reference program, and both against
// the same program run op by op (where loops are not loops, and have the gradients of what ran).
#include <gtest/gtest.h>

#include <cmath>

#include "undertow/base/philox.h"
#include "undertow/ops/control.h"
#include "undertow/ops/ops.h"
#include "undertow/runtime/context.h"
#include "undertow/runtime/session.h"

namespace undertow {
namespace {

/// Makes the same program for the same seed, whatever device runs it.
class Program {
 public:
  explicit Program(std::uint64_t seed, bool control) : random_(seed, 1), control_(control) {}

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
    switch (control_ ? random_.below(24) : random_.below(12)) {
      case 12:
      case 13: return branch(x);
      case 14:
      case 15: return scan_rows(x, random_.below(2) == 1);
      case 16:
      case 17: return loop(x);
      case 18: return scan_branches(x);
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

  Tensor branch(const Tensor& x) {
    const Tensor other = pick();
    return ops::cond(
        ops::greater(ops::reduce_sum(x), 0.1),
        [&](const ops::Tensors& in) { return ops::Tensors{ops::tanh(in[0]) * ops::reduce_mean(other)}; },
        [&](const ops::Tensors& in) { return ops::Tensors{in[0] * 0.5 - ops::reduce_max(other)}; }, {x})[0];
  }

  /// A recurrence over the rows of x; uses another value, and gives rows and a last carry.
  Tensor scan_rows(const Tensor& x, bool reverse) {
    const Tensor other = ops::reduce_mean(pick());
    const auto r = ops::scan(
        [&](const ops::Tensors& carry, const ops::Tensors& row) {
          const Tensor h = ops::sin(carry[0] * 0.7 + row[0]) + other;
          return ops::ScanResult{{h, carry[0]}, {h * carry[1], carry[0]}};
        },
        {ops::reduce_sum(x, {0}) * 0.1, ops::reduce_max(x, {0})}, {x}, {.reverse = reverse});
    return ops::tanh(r.ys[0] + r.ys[1] * r.carry[1]) + r.carry[0];
  }

  Tensor loop(const Tensor& x) {
    const Tensor other = ops::reduce_mean(pick());
    return ops::while_loop(
        [](const ops::Tensors& c) { return ops::less(c[1], 3.0); },
        [&](const ops::Tensors& c) { return ops::Tensors{ops::tanh(c[0] + other) - 0.1 * c[0], c[1] + 1.0}; },
        {x, ops::constant(0, DType::kFloat32)})[0];
  }

  /// A branch in a scan.
  Tensor scan_branches(const Tensor& x) {
    const auto step = [](const ops::Tensors& carry, const ops::Tensors& row) {
      const Tensor h = ops::cond(
          ops::greater(ops::reduce_sum(row[0] + carry[0]), 0.0),
          [&](const ops::Tensors& c) { return ops::Tensors{ops::sigmoid(c[0]) + row[0]}; },
          [&](const ops::Tensors& c) { return ops::Tensors{row[0] - c[0] * 0.5}; }, carry)[0];
      return ops::ScanResult{{h}, {h}};
    };
    return ops::scan(step, {ops::reduce_max(x, {0})}, {x}).ys[0];
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
  bool control_;
  std::vector<Tensor> values_;
};

Tensor uniform(PhiloxStream& r, const Shape& shape) {
  Tensor t(DType::kFloat32, shape);
  for (std::int64_t i = 0; i < t.size(); ++i) t.data_as<float>()[i] = 2 * r.uniform() - 1;
  return t;
}

void compare(const std::vector<Tensor>& expected, const std::vector<Tensor>& got, std::uint64_t seed,
             const char* what) {
  ASSERT_EQ(expected.size(), got.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const Tensor &a = expected[k], &b = got[k];
    ASSERT_EQ(a.shape(), b.shape()) << what << ", seed " << seed << ", output " << k;
    double scale = 1;
    for (std::int64_t i = 0; i < a.size(); ++i) scale = std::max(scale, std::abs(double(a.data_as<float>()[i])));
    for (std::int64_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a.data_as<float>()[i], b.data_as<float>()[i], 2e-4 * scale)
          << what << ", seed " << seed << ", output " << k << ", element " << i;
  }
}

void check(std::uint64_t seeds, bool control) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
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
            return Program(seed, control).build(trace, columns_in);
          },
          runtime::StepOutputs::kLoss);
      results.push_back(runtime::run_once(step, in));
    }
    set_context({.device_target = "reference"});  // op by op, which would be a compilation each
    runtime::Trace trace(runtime::Trace::Mode::kEager);
    const runtime::TraceScope scope(&trace);
    std::vector<Tensor> columns_in;
    for (const auto& t : in) columns_in.push_back(trace.input("x", t));
    const std::vector<Tensor> eager = Program(seed, control).build(trace, columns_in);
    compare(eager, results[0], seed, "reference");
    compare(eager, results[1], seed, "CPU");
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(RandomGraphs, FusedEqualsReference) { check(60, false); }
TEST(RandomGraphs, ControlFlowEqualsWhatItRuns) { check(16, true); }

}  // namespace
}  // namespace undertow
