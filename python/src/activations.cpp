// SPDX-License-Identifier: Apache-2.0
// nn: activations.
#include "undertow/train/activations.h"

#include "python/src/bind_layer.h"

namespace undertow::python {

void bind_activations(nb::module_& m) {
  namespace fn = nn::fn;
  bind_function<fn::ReLU>(m, "max(x, 0); NaN stays NaN.");
  bind_function<fn::ReLU6>(m, "min(max(x, 0), 6)");
  bind_function<fn::Sigmoid>(m, "1 / (1 + e^-x)");
  bind_function<fn::Tanh>(m, "Hyperbolic tangent.");
  bind_function<fn::Tanhshrink>(m, "x - tanh(x)");
  bind_function<fn::SiLU>(m, "x sigmoid(x)");
  bind_function<fn::Swish>(m, "x sigmoid(x)");
  bind_function<fn::Mish>(m, "x tanh(softplus(x))");
  bind_function<fn::HSwish>(m, "x relu6(x + 3) / 6");
  bind_function<fn::HSigmoid>(m, "relu6(x + 3) / 6");
  bind_function<fn::LogSigmoid>(m, "log(sigmoid(x)), without overflow.");
  bind_function<fn::Softsign>(m, "x / (1 + |x|)");
  bind_function<fn::SeLU>(m, "Scaled ELU.");
  bind_function<fn::FastGelu>(m, "x sigmoid(1.702 x)");
  bind_function<fn::GELU>(m, "x Phi(x) of the normal distribution; `approximate`: the form with tanh.",
                          field("approximate", &fn::GELU::approximate));
  bind_function<fn::LeakyReLU>(m, "x where positive, else alpha x.", field("alpha", &fn::LeakyReLU::alpha));
  bind_function<fn::ELU>(m, "x where positive, else alpha (e^x - 1).", field("alpha", &fn::ELU::alpha));
  bind_function<fn::CELU>(m, "x where positive, else alpha (e^(x / alpha) - 1).", field("alpha", &fn::CELU::alpha));
  bind_function<fn::HShrink>(m, "x where |x| > lambd, else 0.", field("lambd", &fn::HShrink::lambd));
  bind_function<fn::SoftShrink>(m, "x moved by lambd towards 0, at most to 0.", field("lambd", &fn::SoftShrink::lambd));
  bind_function<fn::Softplus>(m, "log(1 + e^(beta x)) / beta.", field("beta", &fn::Softplus::beta),
                              field("threshold", &fn::Softplus::threshold));
  bind_function<fn::Hardtanh>(m, "x limited to [min_val, max_val].", field("min_val", &fn::Hardtanh::min_val),
                              field("max_val", &fn::Hardtanh::max_val));
  bind_function<fn::Threshold>(m, "x where x > threshold, else value.",
                               required("threshold", &fn::Threshold::threshold),
                               required("value", &fn::Threshold::value));
  bind_function<fn::RReLU>(m, "x where positive, else x times a draw from U(lower, upper) for each element.",
                           field("lower", &fn::RReLU::lower), field("upper", &fn::RReLU::upper));
  bind_function<fn::Softmax>(m, "exp(x) / sum(exp(x)) along an axis.", field("axis", &fn::Softmax::axis));
  bind_function<fn::LogSoftmax>(m, "log(softmax(x)), without overflow.", field("axis", &fn::LogSoftmax::axis));
  bind_function<fn::Softmin>(m, "softmax(-x)", field("axis", &fn::Softmin::axis));
  bind_function<fn::Softmax2d>(m, "softmax over the channels of (C, H, W) or (N, C, H, W).");
  bind_function<fn::GLU>(m, "The first half along an axis, times the sigmoid of the second.",
                         field("axis", &fn::GLU::axis));

  auto prelu = cell_class<nn::PReLUCell, nn::Cell>(
      m, "PReLU", "x where positive, else w x, with the parameter w: one value, or one a channel.");
  prelu.def(
      "__init__",
      [](nb::pointer_and_handle<nn::PReLUCell> self, std::int64_t channel, nb::handle w) {
        const bool list = PyList_Check(w.ptr()) || PyTuple_Check(w.ptr());
        construct_cell(self, channel, list ? common::Init(to_tensor(w, DType::kFloat32)) : to_init(w).init);
      },
      "channel"_a = 1, "w"_a = 0.25);
  m.def(
      "get_activation",
      [](std::optional<std::string> name, nb::handle) { return name ? nn::get_activation(*name) : Ref<nn::Cell>(); },
      "name"_a.none(), "prim_name"_a.none() = nb::none(),
      "A new activation cell by name; None for None. Raises KeyError naming the known names.");
}

}  // namespace undertow::python
