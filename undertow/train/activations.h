// SPDX-License-Identifier: Apache-2.0
// train/activations.h: activation functions as cells, with MindSpore's names and defaults. The functions are those of
// ops/activations.h.
#pragma once

#include <string>

#include "undertow/train/function_cell.h"
#include "undertow/train/initializer.h"

namespace undertow::nn {

namespace fn {

// A name, what it computes of x, and its options.
#define UNDERTOW_ACTIVATION(name, ...)                    \
  struct name {                                           \
    static constexpr const char* kName = #name;           \
    __VA_ARGS__ Tensor operator()(const Tensor& x) const; \
  };
UNDERTOW_ACTIVATION(ReLU)
UNDERTOW_ACTIVATION(ReLU6)
UNDERTOW_ACTIVATION(Sigmoid)
UNDERTOW_ACTIVATION(Tanh)
UNDERTOW_ACTIVATION(Tanhshrink)
UNDERTOW_ACTIVATION(SiLU)
UNDERTOW_ACTIVATION(Swish)
UNDERTOW_ACTIVATION(Mish)
UNDERTOW_ACTIVATION(HSwish)
UNDERTOW_ACTIVATION(HSigmoid)
UNDERTOW_ACTIVATION(LogSigmoid)
UNDERTOW_ACTIVATION(Softsign)
UNDERTOW_ACTIVATION(SeLU)
UNDERTOW_ACTIVATION(FastGelu)
UNDERTOW_ACTIVATION(GELU, bool approximate = true;)
UNDERTOW_ACTIVATION(LeakyReLU, double alpha = 0.2;)
UNDERTOW_ACTIVATION(ELU, double alpha = 1.0;)
UNDERTOW_ACTIVATION(CELU, double alpha = 1.0; void check() const;)
UNDERTOW_ACTIVATION(HShrink, double lambd = 0.5;)
UNDERTOW_ACTIVATION(SoftShrink, double lambd = 0.5; void check() const;)
UNDERTOW_ACTIVATION(Softplus, double beta = 1.0; double threshold = 20.0; void check() const;)
UNDERTOW_ACTIVATION(Hardtanh, double min_val = -1.0; double max_val = 1.0; void check() const;)
UNDERTOW_ACTIVATION(Threshold, double threshold = 0.0; double value = 0.0;)
UNDERTOW_ACTIVATION(RReLU, double lower = 1.0 / 8; double upper = 1.0 / 3; void check() const;)
UNDERTOW_ACTIVATION(Softmax, std::int64_t axis = -1;)
UNDERTOW_ACTIVATION(LogSoftmax, std::int64_t axis = -1;)
UNDERTOW_ACTIVATION(Softmin, std::int64_t axis = -1;)
UNDERTOW_ACTIVATION(Softmax2d)
UNDERTOW_ACTIVATION(GLU, std::int64_t axis = -1;)
#undef UNDERTOW_ACTIVATION

}  // namespace fn

using ReLU = FunctionHandle<fn::ReLU>;
using ReLU6 = FunctionHandle<fn::ReLU6>;
using Sigmoid = FunctionHandle<fn::Sigmoid>;
using Tanh = FunctionHandle<fn::Tanh>;
using Tanhshrink = FunctionHandle<fn::Tanhshrink>;
using SiLU = FunctionHandle<fn::SiLU>;
using Swish = FunctionHandle<fn::Swish>;
using Mish = FunctionHandle<fn::Mish>;
using HSwish = FunctionHandle<fn::HSwish>;
using HSigmoid = FunctionHandle<fn::HSigmoid>;
using LogSigmoid = FunctionHandle<fn::LogSigmoid>;
using Softsign = FunctionHandle<fn::Softsign>;
using SeLU = FunctionHandle<fn::SeLU>;
using FastGelu = FunctionHandle<fn::FastGelu>;
using GELU = FunctionHandle<fn::GELU>;
using LeakyReLU = FunctionHandle<fn::LeakyReLU>;
using ELU = FunctionHandle<fn::ELU>;
using CELU = FunctionHandle<fn::CELU>;
using HShrink = FunctionHandle<fn::HShrink>;
using SoftShrink = FunctionHandle<fn::SoftShrink>;
using Softplus = FunctionHandle<fn::Softplus>;
using Hardtanh = FunctionHandle<fn::Hardtanh>;
using Threshold = FunctionHandle<fn::Threshold>;
using RReLU = FunctionHandle<fn::RReLU>;
using Softmax = FunctionHandle<fn::Softmax>;
using LogSoftmax = FunctionHandle<fn::LogSoftmax>;
using Softmin = FunctionHandle<fn::Softmin>;
using Softmax2d = FunctionHandle<fn::Softmax2d>;
using GLU = FunctionHandle<fn::GLU>;

/// x where positive, else a x, with the parameter a (named so; attribute `w`): one value, or one a channel.
class PReLUCell : public Cell {
 public:
  explicit PReLUCell(std::int64_t channel = 1, const common::Init& w = 0.25);
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "PReLU"; }
};
class PReLU : public Handle<PReLUCell> {
 public:
  explicit PReLU(std::int64_t channel = 1, const common::Init& w = 0.25) : Handle(make_ref<PReLUCell>(channel, w)) {}
};

/// A new activation by name ("relu", "gelu", "leakyrelu", ...); null for an empty name. Throws KeyError naming the
/// known names.
Ref<Cell> get_activation(const std::string& name);

}  // namespace undertow::nn
