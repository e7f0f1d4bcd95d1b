// SPDX-License-Identifier: Apache-2.0
// undertow.ops: activation functions.
#include "python/src/ops_nn.h"
#include "undertow/base/check.h"
#include "undertow/ops/activations.h"

namespace undertow::python {

void bind_ops_activations(nb::module_& m) {
  struct Plain {
    const char *name, *argument;
    Tensor (*function)(const Tensor&);
    const char* doc;
  };
  const Plain plain[] = {
      {"relu6", "x", ops::relu6, "min(max(x, 0), 6)"},
      {"silu", "input", ops::silu, "x sigmoid(x)"},
      {"swish", "x", ops::silu, "x sigmoid(x)"},
      {"mish", "x", ops::mish, "x tanh(softplus(x))"},
      {"hardswish", "input", ops::hardswish, "x relu6(x + 3) / 6"},
      {"hardsigmoid", "input", ops::hardsigmoid, "relu6(x + 3) / 6"},
      {"fast_gelu", "x", ops::fast_gelu, "x sigmoid(1.702 x)"},
      {"selu", "input_x", ops::selu, "Scaled ELU."},
      {"softsign", "x", ops::softsign, "x / (1 + |x|)"},
      {"logsigmoid", "x", ops::logsigmoid, "log(sigmoid(x)), without overflow."},
      {"tanhshrink", "input", ops::tanhshrink, "x - tanh(x)"},
  };
  for (const Plain& p : plain) m.def(p.name, p.function, nb::arg(p.argument), p.doc);

  m.def(
      "gelu",
      [](const Tensor& x, const std::string& approximate) {
        UNDERTOW_CHECK(approximate == "none" || approximate == "tanh", ValueError,
                       "gelu: approximate must be 'none' or 'tanh', got '{}'", approximate);
        return ops::gelu(x, approximate == "tanh");
      },
      "input"_a, "approximate"_a = "none", "x Phi(x) of the normal distribution.");
  m.def("leaky_relu", &ops::leaky_relu, "input"_a, "alpha"_a = 0.2, "x where positive, else alpha x.");
  m.def("elu", &ops::elu, "input_x"_a, "alpha"_a = 1.0, "x where positive, else alpha (e^x - 1).");
  m.def("celu", &ops::celu, "x"_a, "alpha"_a = 1.0, "x where positive, else alpha (e^(x / alpha) - 1).");
  m.def("softplus", &ops::softplus, "input"_a, "beta"_a = 1.0, "threshold"_a = 20.0, "log(1 + e^(beta x)) / beta.");
  m.def("hardshrink", &ops::hardshrink, "input"_a, "lambd"_a = 0.5, "x where |x| > lambd, else 0.");
  m.def("softshrink", &ops::softshrink, "input"_a, "lambd"_a = 0.5, "x moved by lambd towards 0, at most to 0.");
  m.def("hardtanh", &ops::hardtanh, "input"_a, "min_val"_a = -1.0, "max_val"_a = 1.0, "x limited to a range.");
  m.def("threshold", &ops::threshold, "input"_a, "thr"_a, "value"_a, "x where x > thr, else value.");
  m.def("softmin", &ops::softmin, "x"_a, "axis"_a = -1, "softmax(-x)");
  m.def("glu", &ops::glu, "x"_a, "axis"_a = -1, "The first half along an axis, times the sigmoid of the second.");
  m.def("prelu", &ops::prelu, "input"_a, "weight"_a, "x where positive, else weight x; one weight, or one a channel.");
  m.def("rrelu", &ops::rrelu, "input"_a, "lower"_a = 1.0 / 8, "upper"_a = 1.0 / 3,
        "x where positive, else x times a draw from U(lower, upper).");
}

}  // namespace undertow::python
