// SPDX-License-Identifier: Apache-2.0
// ops/activations.h: activation functions. Integers give float32; NaN stays NaN; half types are computed in float32.
#pragma once

#include <cstdint>

#include "undertow/tensor/tensor.h"

namespace undertow::ops {

Tensor relu6(const Tensor& x);  ///< min(max(x, 0), 6)
/// x Phi(x) of the normal distribution (Hendrycks, Gimpel, 2016); `approximate`: its form with tanh.
Tensor gelu(const Tensor& x, bool approximate = false);
Tensor fast_gelu(const Tensor& x);    ///< x sigmoid(1.702 x)
Tensor silu(const Tensor& x);         ///< x sigmoid(x)
Tensor mish(const Tensor& x);         ///< x tanh(softplus(x)) (Misra, 2019)
Tensor hardswish(const Tensor& x);    ///< x relu6(x + 3) / 6
Tensor hardsigmoid(const Tensor& x);  ///< relu6(x + 3) / 6
Tensor hardtanh(const Tensor& x, double min_val = -1, double max_val = 1);
Tensor leaky_relu(const Tensor& x, double alpha = 0.2);  ///< x where positive, else alpha x
Tensor elu(const Tensor& x, double alpha = 1);           ///< x where positive, else alpha (e^x - 1)
Tensor celu(const Tensor& x, double alpha = 1);          ///< x where positive, else alpha (e^(x / alpha) - 1)
Tensor selu(const Tensor& x);                            ///< scaled elu (Klambauer et al., 2017)
/// log(1 + e^(beta x)) / beta; x itself where beta x > threshold.
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
Tensor softsign(const Tensor& x);                             ///< x / (1 + |x|)
Tensor logsigmoid(const Tensor& x);                           ///< log(sigmoid(x)), without overflow
Tensor hardshrink(const Tensor& x, double lambd = 0.5);       ///< x where |x| > lambd, else 0
Tensor softshrink(const Tensor& x, double lambd = 0.5);       ///< x moved by lambd towards 0, at most to 0
Tensor tanhshrink(const Tensor& x);                           ///< x - tanh(x)
Tensor threshold(const Tensor& x, double thr, double value);  ///< x where x > thr, else value
Tensor softmin(const Tensor& x, std::int64_t axis = -1);      ///< softmax(-x)
/// First half times the sigmoid of the second half along `axis`, which must be even.
Tensor glu(const Tensor& x, std::int64_t axis = -1);
/// x where positive, else weight x; weight holds one value, or one a channel (axis 1 of x).
Tensor prelu(const Tensor& x, const Tensor& weight);
/// x where positive, else x times a draw from U(lower, upper), which is made anew for each element.
Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3);

}  // namespace undertow::ops
