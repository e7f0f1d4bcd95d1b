// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/activations.h"

#include <array>

#include "undertow/base/check.h"
#include "undertow/ops/activations.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace fn {

Tensor ReLU::operator()(const Tensor& x) const { return ops::relu(x); }
Tensor ReLU6::operator()(const Tensor& x) const { return ops::relu6(x); }
Tensor Sigmoid::operator()(const Tensor& x) const { return ops::sigmoid(x); }
Tensor Tanh::operator()(const Tensor& x) const { return ops::tanh(x); }
Tensor Tanhshrink::operator()(const Tensor& x) const { return ops::tanhshrink(x); }
Tensor SiLU::operator()(const Tensor& x) const { return ops::silu(x); }
Tensor Swish::operator()(const Tensor& x) const { return ops::silu(x); }
Tensor Mish::operator()(const Tensor& x) const { return ops::mish(x); }
Tensor HSwish::operator()(const Tensor& x) const { return ops::hardswish(x); }
Tensor HSigmoid::operator()(const Tensor& x) const { return ops::hardsigmoid(x); }
Tensor LogSigmoid::operator()(const Tensor& x) const { return ops::logsigmoid(x); }
Tensor Softsign::operator()(const Tensor& x) const { return ops::softsign(x); }
Tensor SeLU::operator()(const Tensor& x) const { return ops::selu(x); }
Tensor FastGelu::operator()(const Tensor& x) const { return ops::fast_gelu(x); }
Tensor GELU::operator()(const Tensor& x) const { return ops::gelu(x, approximate); }
Tensor LeakyReLU::operator()(const Tensor& x) const { return ops::leaky_relu(x, alpha); }
Tensor ELU::operator()(const Tensor& x) const { return ops::elu(x, alpha); }
Tensor CELU::operator()(const Tensor& x) const { return ops::celu(x, alpha); }
Tensor HShrink::operator()(const Tensor& x) const { return ops::hardshrink(x, lambd); }
Tensor SoftShrink::operator()(const Tensor& x) const { return ops::softshrink(x, lambd); }
Tensor Softplus::operator()(const Tensor& x) const { return ops::softplus(x, beta, threshold); }
Tensor Hardtanh::operator()(const Tensor& x) const { return ops::hardtanh(x, min_val, max_val); }
Tensor Threshold::operator()(const Tensor& x) const { return ops::threshold(x, threshold, value); }
Tensor RReLU::operator()(const Tensor& x) const { return ops::rrelu(x, lower, upper); }
Tensor Softmax::operator()(const Tensor& x) const { return ops::softmax(x, axis); }
Tensor LogSoftmax::operator()(const Tensor& x) const { return ops::log_softmax(x, axis); }
Tensor Softmin::operator()(const Tensor& x) const { return ops::softmin(x, axis); }
Tensor GLU::operator()(const Tensor& x) const { return ops::glu(x, axis); }

Tensor Softmax2d::operator()(const Tensor& x) const {
  UNDERTOW_CHECK(x.ndim() == 3 || x.ndim() == 4, ShapeError,
                 "Softmax2d: the input must be (C, H, W) or (N, C, H, W), but its shape is {}", x.shape().str());
  return ops::softmax(x, -3);
}

void CELU::check() const { UNDERTOW_CHECK(alpha != 0, ValueError, "CELU: 'alpha' must not be 0"); }
void SoftShrink::check() const {
  UNDERTOW_CHECK(lambd >= 0, ValueError, "SoftShrink: 'lambd' must not be negative but is {}", lambd);
}
void Softplus::check() const { UNDERTOW_CHECK(beta != 0, ValueError, "Softplus: 'beta' must not be 0"); }
void Hardtanh::check() const {
  UNDERTOW_CHECK(min_val <= max_val, ValueError,
                 "Hardtanh: 'min_val' must be at most 'max_val', but they are {} and {}", min_val, max_val);
}
void RReLU::check() const {
  UNDERTOW_CHECK(lower <= upper, ValueError, "RReLU: 'lower' must be at most 'upper', but they are {} and {}", lower,
                 upper);
}

}  // namespace fn

PReLUCell::PReLUCell(std::int64_t channel, const common::Init& w) {
  UNDERTOW_CHECK(channel > 0, ValueError, "PReLU: 'channel' must be a positive number but is {}", channel);
  insert_param("w", Parameter(common::initializer(w, Shape{channel}), "a"));
}

Tensor PReLUCell::construct(const Tensor& x) { return ops::prelu(x, get_param("w")); }

namespace {

struct Named {
  const char* name;
  Ref<Cell> (*make)();
};
template <typename F>
Ref<Cell> made() {
  return make_ref<FunctionCell<F>>();
}
constexpr std::array<Named, 26> kNamed{{
    {"celu", made<fn::CELU>},
    {"elu", made<fn::ELU>},
    {"fast_gelu", made<fn::FastGelu>},
    {"gelu", made<fn::GELU>},
    {"glu", made<fn::GLU>},
    {"hardtanh", made<fn::Hardtanh>},
    {"hshrink", made<fn::HShrink>},
    {"hsigmoid", made<fn::HSigmoid>},
    {"hswish", made<fn::HSwish>},
    {"leakyrelu", made<fn::LeakyReLU>},
    {"logsigmoid", made<fn::LogSigmoid>},
    {"logsoftmax", made<fn::LogSoftmax>},
    {"mish", made<fn::Mish>},
    {"prelu", []() -> Ref<Cell> { return make_ref<PReLUCell>(); }},
    {"relu", made<fn::ReLU>},
    {"relu6", made<fn::ReLU6>},
    {"rrelu", made<fn::RReLU>},
    {"sigmoid", made<fn::Sigmoid>},
    {"silu", made<fn::SiLU>},
    {"softmax", made<fn::Softmax>},
    {"softmax2d", made<fn::Softmax2d>},
    {"softmin", made<fn::Softmin>},
    {"softshrink", made<fn::SoftShrink>},
    {"softsign", made<fn::Softsign>},
    {"tanh", made<fn::Tanh>},
    {"tanhshrink", made<fn::Tanhshrink>},
}};

}  // namespace

Ref<Cell> get_activation(const std::string& name) {
  if (name.empty()) return {};
  std::string known;
  for (const Named& n : kNamed) {
    if (name == n.name) return n.make();
    known += (known.empty() ? "" : ", ") + std::string(n.name);
  }
  throw KeyError(fmt::format("activation '{}' is not known; use one of {}, or a Cell", name, known));
}

}  // namespace undertow::nn
