// SPDX-License-Identifier: Apache-2.0
// Mixed precision from C++.
#include "undertow/train/amp.h"

#include <gtest/gtest.h>

#include "undertow/ops/ops.h"
#include "undertow/runtime/context.h"
#include "undertow/train/amp_report.h"
#include "undertow/train/layers.h"
#include "undertow/train/loss.h"
#include "undertow/train/model.h"
#include "undertow/train/norm_layers.h"

namespace undertow {
namespace {

/// Dense and LayerNorm; keeps the dtypes on the way.
struct Net : nn::Cell {
  nn::Dense fc = child("fc", nn::Dense(4, 4));
  nn::LayerNorm norm = child("norm", nn::LayerNorm({4}));
  std::vector<DType> seen;
  Tensor construct(const Tensor& x) override {
    const Tensor h = fc(x), y = norm(h);
    seen = {x.dtype(), h.dtype(), y.dtype()};
    return y;
  }
  std::string cls_name() const override { return "Net"; }
};

Tensor ones() { return Tensor::full({2, 4}, 1); }

TEST(Amp, LevelsCastAtTheEdges) {
  const auto net = nn::make<Net>();
  amp::auto_mixed_precision(net, {.amp_level = "O2", .dtype = DType::kBFloat16});
  const Tensor y = net(ones());
  EXPECT_EQ(net->seen, (std::vector{DType::kBFloat16, DType::kBFloat16, DType::kBFloat16}));
  EXPECT_EQ(y.dtype(), DType::kFloat32);
  const amp::Report report = amp::report(net);
  ASSERT_EQ(report.cells.size(), 3u);
  EXPECT_EQ(report.cells[1].dtype, "BFloat16");
  EXPECT_EQ(report.cells[2].dtype, "Float32");
  EXPECT_FALSE(report.compiled);
}

TEST(Amp, ToFloatReachesAllBelow) {
  const auto net = nn::make<Net>();
  net->to_float(DType::kFloat16);
  EXPECT_EQ(net(ones()).dtype(), DType::kFloat16);
  EXPECT_THROW(net->to_float(DType::kInt32), ValueError);
}

TEST(Amp, WrongLevelsAreRefused) {
  const auto net = nn::make<Net>();
  EXPECT_THROW(amp::auto_mixed_precision(net, {.amp_level = "O4"}), ValueError);
  EXPECT_THROW(amp::auto_mixed_precision(net, {.amp_level = "O1", .dtype = DType::kFloat64}), TypeError);
  EXPECT_THROW(amp::custom_mixed_precision(net, {}), ValueError);
  amp::auto_mixed_precision(net, {.amp_level = "O1", .dtype = DType::kFloat16});
  EXPECT_THROW(amp::auto_mixed_precision(net, {.amp_level = "O3", .dtype = DType::kFloat16}), ValueError);
  EXPECT_THROW(set_context({.half = "float8"}), ValueError);
  EXPECT_EQ(context().half, "auto");
}

TEST(Amp, ListsNameClasses) {
  const auto net = nn::make<Net>();
  amp::custom_mixed_precision(net, {.black_list = {"Dense"}, .dtype = DType::kFloat16});
  const amp::Report report = amp::report(net);
  EXPECT_EQ(report.cells[1].dtype, "Float32");
  EXPECT_EQ(report.cells[2].dtype, "Float16");
}

TEST(Amp, TrainingKeepsFloat32State) {
  const auto net = nn::make<Net>();
  const auto optimizer = nn::SGD(net.trainable_params(), {.learning_rate = 0.1});
  const auto step =
      amp::build_train_network(net, optimizer, nn::MSELoss(), {.amp_level = "O3", .dtype = DType::kFloat16});
  step->set_train();
  const Tensor loss = (*step)(ones(), Tensor::zeros({2, 4}));
  EXPECT_EQ(loss.dtype(), DType::kFloat32);
  EXPECT_EQ(net->norm->get_param("beta").dtype(), DType::kFloat32);
  EXPECT_NE(net->norm->get_param("beta").data_as<float>()[0], 0.f);
}

}  // namespace
}  // namespace undertow
