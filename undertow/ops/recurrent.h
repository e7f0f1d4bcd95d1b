// SPDX-License-Identifier: Apache-2.0
// ops/recurrent.h: recurrent steps and layers. Weights are (gates * hidden, ...) with MindSpore's and PyTorch's order
// of gates: LSTM input, forget, cell, output; GRU reset, update, new.
#pragma once

#include <cstdint>

#include "undertow/tensor/tensor.h"

namespace undertow::ops {

enum class Recurrence : std::uint8_t { kTanh, kRelu, kLstm, kGru };
constexpr std::int64_t gates_of(Recurrence r) { return r == Recurrence::kLstm ? 4 : r == Recurrence::kGru ? 3 : 1; }

struct RecurrentState {
  Tensor h, c;  ///< (B, hidden); c of an LSTM only
};
/// Biases may be undefined.
struct RecurrentWeights {
  Tensor w_ih, w_hh, b_ih, b_hh;
};
/// x (B, input)
RecurrentState recurrent_step(Recurrence kind, const Tensor& x, const RecurrentState& state,
                              const RecurrentWeights& weights);

struct RecurrentResult {
  Tensor output;  ///< (T, B, hidden)
  RecurrentState last;
};
/// x (T, B, input), one step after the other; `reverse`: from the end. seq_length (B,), if defined: sample b has that
/// many steps; beyond them the output is 0 and the state stays.
RecurrentResult recurrent_layer(Recurrence kind, const Tensor& x, const RecurrentState& state,
                                const RecurrentWeights& weights, const Tensor& seq_length = {}, bool reverse = false);

}  // namespace undertow::ops
