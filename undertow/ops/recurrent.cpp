// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/recurrent.h"

#include "undertow/ops/nn_common.h"

namespace undertow::ops {
namespace {

Tensor project(const Tensor& x, const Tensor& w, const Tensor& b) {
  const Tensor y = matmul(x, cast(w, x.dtype()), false, true);
  return b.defined() ? add(y, cast(b, x.dtype())) : y;
}

/// Gate `i` of n, of (B, n * hidden).
Tensor gate(const Tensor& all, std::int64_t i, std::int64_t n) {
  const std::int64_t hidden = all.shape(1) / n;
  return slice(all, {0, i * hidden}, {1, 1}, Shape{all.shape(0), hidden});
}

/// `from_x` is x's part of the gates; with all biases but a GRU's b_hh, which its reset gate multiplies.
RecurrentState step(Recurrence kind, const Tensor& from_x, const RecurrentState& s, const RecurrentWeights& w) {
  switch (kind) {
    case Recurrence::kTanh: return {tanh(add(from_x, project(s.h, w.w_hh, {}))), {}};
    case Recurrence::kRelu: return {relu(add(from_x, project(s.h, w.w_hh, {}))), {}};
    case Recurrence::kLstm: {
      const Tensor gates = add(from_x, project(s.h, w.w_hh, {}));
      const Tensor in = sigmoid(gate(gates, 0, 4)), forget = sigmoid(gate(gates, 1, 4));
      const Tensor cell = tanh(gate(gates, 2, 4)), out = sigmoid(gate(gates, 3, 4));
      const Tensor c = add(mul(forget, s.c), mul(in, cell));
      return {mul(out, tanh(c)), c};
    }
    default: {
      const Tensor from_h = project(s.h, w.w_hh, w.b_hh);
      const Tensor reset = sigmoid(add(gate(from_x, 0, 3), gate(from_h, 0, 3)));
      const Tensor update = sigmoid(add(gate(from_x, 1, 3), gate(from_h, 1, 3)));
      const Tensor fresh = tanh(add(gate(from_x, 2, 3), mul(reset, gate(from_h, 2, 3))));
      return {add(fresh, mul(update, sub(s.h, fresh))), {}};
    }
  }
}

/// x's part of the gates, of rows of inputs.
Tensor input_gates(Recurrence kind, const Tensor& rows, const RecurrentWeights& w) {
  const Tensor y = project(rows, w.w_ih, w.b_ih);
  return kind == Recurrence::kGru || !w.b_hh.defined() ? y : add(y, cast(w.b_hh, y.dtype()));
}

void check_weights(Recurrence kind, const Tensor& x, const RecurrentState& s, const RecurrentWeights& w) {
  const std::int64_t gates = gates_of(kind) * s.h.shape(-1);
  UNDERTOW_CHECK(w.w_ih.ndim() == 2 && w.w_ih.shape(0) == gates && w.w_ih.shape(1) == x.shape(-1), ShapeError,
                 "a recurrent layer with {} hidden values needs an input of {} values, but the input has shape {} and "
                 "the weight {}",
                 s.h.shape(-1), w.w_ih.shape(1), x.shape().str(), w.w_ih.shape().str());
}

}  // namespace

RecurrentState recurrent_step(Recurrence kind, const Tensor& x, const RecurrentState& state,
                              const RecurrentWeights& weights) {
  check_weights(kind, x, state, weights);
  return step(kind, input_gates(kind, x, weights), state, weights);
}

RecurrentResult recurrent_layer(Recurrence kind, const Tensor& x, const RecurrentState& state,
                                const RecurrentWeights& weights, const Tensor& seq_length, bool reverse) {
  UNDERTOW_CHECK(x.ndim() == 3, ShapeError, "a recurrent layer needs an input of 3 dimensions, got shape {}",
                 x.shape().str());
  check_weights(kind, x, state, weights);
  const std::int64_t steps = x.shape(0), batch = x.shape(1);
  UNDERTOW_CHECK(steps > 0, ShapeError, "a recurrent layer needs at least one step, but the input has shape {}",
                 x.shape().str());
  // One product for all steps.
  const Tensor gates = input_gates(kind, reshape(x, {steps * batch, x.shape(2)}), weights);
  RecurrentState s = state;
  std::vector<Tensor> outputs(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = reverse ? steps - 1 - i : i;
    const Tensor now = slice(gates, {t * batch, 0}, {1, 1}, Shape{batch, gates.shape(1)});
    RecurrentState next = step(kind, now, s, weights);
    Tensor out = next.h;
    if (seq_length.defined()) {
      const Tensor runs = expand_dims(greater(seq_length, t), 1);
      out = select(runs, next.h, 0.0);
      next.h = select(runs, next.h, s.h);
      if (next.c.defined()) next.c = select(runs, next.c, s.c);
    }
    outputs[static_cast<std::size_t>(t)] = out;
    s = next;
  }
  return {stack(outputs, 0), s};
}

}  // namespace undertow::ops
