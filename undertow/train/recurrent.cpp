// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/recurrent.h"

#include <cmath>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/train/initializer.h"

namespace undertow::nn {
namespace {

using ops::Recurrence;

void check_sizes(const char* cls, std::int64_t input_size, std::int64_t hidden_size) {
  UNDERTOW_CHECK(input_size > 0, ValueError, "{}: 'input_size' must be a positive number but is {}", cls, input_size);
  UNDERTOW_CHECK(hidden_size > 0, ValueError, "{}: 'hidden_size' must be a positive number but is {}", cls,
                 hidden_size);
}

Recurrence with_nonlinearity(const char* cls, const std::string& name) {
  UNDERTOW_CHECK(name == "tanh" || name == "relu", ValueError,
                 "{}: 'nonlinearity' must be 'tanh' or 'relu' but is '{}'", cls, name);
  return name == "relu" ? Recurrence::kRelu : Recurrence::kTanh;
}

Parameter uniform(const std::string& name, const Shape& shape, std::int64_t hidden, DType dtype) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  return Parameter(common::initializer(common::Uniform(bound), shape, dtype), name);
}

std::string suffix(std::int64_t layer, bool reverse) { return fmt::format("_l{}{}", layer, reverse ? "_reverse" : ""); }

/// (h, c) of an LSTM.
std::pair<Value, Value> state_pair(const Cell& cell, const Value& hx) {
  UNDERTOW_CHECK(hx.is_list() && hx.list().size() == 2, TypeError,
                 "{}: hx must be a pair (h, c) of tensors for an LSTM", cell.where());
  return {hx.list()[0], hx.list()[1]};
}

}  // namespace

RecurrentCell::RecurrentCell(const char* cls, Recurrence kind, std::int64_t input_size, std::int64_t hidden_size,
                             const RecurrentOptions& o)
    : kind_(kind), input_(input_size), hidden_(hidden_size), options_(o) {
  check_sizes(cls, input_size, hidden_size);
  UNDERTOW_CHECK(o.num_layers > 0, ValueError, "{}: 'num_layers' must be a positive number but is {}", cls,
                 o.num_layers);
  UNDERTOW_CHECK(o.dropout >= 0 && o.dropout < 1, ValueError, "{}: 'dropout' must be in [0, 1) but is {}", cls,
                 o.dropout);
  const std::int64_t gates = ops::gates_of(kind) * hidden_, directions = o.bidirectional ? 2 : 1;
  const auto insert = [&](const char* base, auto&& shape) {
    for (std::int64_t layer = 0; layer < o.num_layers; ++layer)
      for (std::int64_t d = 0; d < directions; ++d) {
        const std::string name = base + suffix(layer, d == 1);
        insert_param(name, uniform(name, shape(layer), hidden_, o.dtype));
      }
  };
  insert("weight_ih", [&](std::int64_t layer) { return Shape{gates, layer == 0 ? input_ : directions * hidden_}; });
  insert("weight_hh", [&](std::int64_t) { return Shape{gates, hidden_}; });
  if (!o.has_bias) return;
  insert("bias_ih", [&](std::int64_t) { return Shape{gates}; });
  insert("bias_hh", [&](std::int64_t) { return Shape{gates}; });
}

ops::RecurrentWeights RecurrentCell::weights(std::int64_t layer, bool reverse) const {
  const std::string s = suffix(layer, reverse);
  return {get_param("weight_ih" + s), get_param("weight_hh" + s), get_param("bias_ih" + s), get_param("bias_hh" + s)};
}

/// (layers * directions, B, hidden) as given, or zeros.
Tensor RecurrentCell::initial(const Value& given, const Tensor& x, const char* name) const {
  const std::int64_t rows = options_.num_layers * (options_.bidirectional ? 2 : 1);
  const Shape shape{rows, x.shape(1), hidden_};
  if (given.is_none()) return ops::full(shape, 0, x.dtype());
  const Tensor& t = given.tensor();
  UNDERTOW_CHECK(t.shape() == shape, ShapeError,
                 "{}: {} must have shape {} (layers * directions, batch, hidden_size) for the input {}, but has {}",
                 where(), name, shape.str(), x.shape().str(), t.shape().str());
  return t;
}

Value RecurrentCell::construct_values(const std::vector<Value>& args) {
  UNDERTOW_CHECK(!args.empty() && args.size() <= 3, TypeError, "{} takes x, hx and seq_length, but got {} inputs",
                 where(), args.size());
  const bool lstm = kind_ == Recurrence::kLstm;
  Tensor x = args[0].tensor();
  UNDERTOW_CHECK(x.ndim() == 3 && x.shape(2) == input_, ShapeError,
                 "{}: expected an input of shape ({}, input_size = {}), but its shape is {}", where(),
                 options_.batch_first ? "batch, time" : "time, batch", input_, x.shape().str());
  if (options_.batch_first) x = ops::swapaxes(x, 0, 1);
  const Value none;
  Value h_given = args.size() > 1 ? args[1] : none, c_given = none;
  if (lstm && !h_given.is_none()) std::tie(h_given, c_given) = state_pair(*this, args[1]);
  const Tensor h0 = initial(h_given, x, lstm ? "h" : "hx");
  const Tensor c0 = lstm ? initial(c_given, x, "c") : Tensor();
  Tensor length;
  if (args.size() > 2 && !args[2].is_none()) {
    length = args[2].tensor();
    UNDERTOW_CHECK(is_integral(length.dtype()) && length.shape() == Shape{x.shape(1)}, ShapeError,
                   "{}: seq_length must be one integer for each of the {} samples, but is {} of shape {}", where(),
                   x.shape(1), name_of(length.dtype()), length.shape().str());
  }

  const std::int64_t directions = options_.bidirectional ? 2 : 1;
  const auto row = [&](const Tensor& all, std::int64_t i) {
    return ops::squeeze(ops::slice(all, {i, 0, 0}, {1, 1, 1}, Shape{1, x.shape(1), hidden_}), {0});
  };
  std::vector<Tensor> h, c;
  for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (std::int64_t d = 0; d < directions; ++d) {
      const std::int64_t i = layer * directions + d;
      const ops::RecurrentState state{row(h0, i), lstm ? row(c0, i) : Tensor()};
      const auto r = ops::recurrent_layer(kind_, x, state, weights(layer, d == 1), length, d == 1);
      outputs.push_back(r.output);
      h.push_back(r.last.h);
      if (lstm) c.push_back(r.last.c);
    }
    x = ops::concat(outputs, 2);
    if (training() && options_.dropout > 0 && layer + 1 < options_.num_layers) x = ops::dropout(x, options_.dropout);
  }
  if (options_.batch_first) x = ops::swapaxes(x, 0, 1);
  const Value last = lstm ? Value(Value::List{Value(ops::stack(h)), Value(ops::stack(c))}) : Value(ops::stack(h));
  return Value(Value::List{Value(x), last});
}

RNNImpl::RNNImpl(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options,
                 const std::string& nonlinearity)
    : RecurrentCell("RNN", with_nonlinearity("RNN", nonlinearity), input_size, hidden_size, options) {}

RecurrentStepCell::RecurrentStepCell(const char* cls, Recurrence kind, std::int64_t input_size,
                                     std::int64_t hidden_size, bool has_bias, DType dtype)
    : kind_(kind), hidden_(hidden_size) {
  check_sizes(cls, input_size, hidden_size);
  const std::int64_t gates = ops::gates_of(kind) * hidden_size;
  insert_param("weight_ih", uniform("weight_ih", Shape{gates, input_size}, hidden_size, dtype));
  insert_param("weight_hh", uniform("weight_hh", Shape{gates, hidden_size}, hidden_size, dtype));
  if (!has_bias) return;
  insert_param("bias_ih", uniform("bias_ih", Shape{gates}, hidden_size, dtype));
  insert_param("bias_hh", uniform("bias_hh", Shape{gates}, hidden_size, dtype));
}

Value RecurrentStepCell::construct_values(const std::vector<Value>& args) {
  UNDERTOW_CHECK(args.size() == 2, TypeError, "{} takes x and hx, but got {} inputs", where(), args.size());
  const Tensor& x = args[0].tensor();
  const Parameter w = get_param("weight_ih");
  UNDERTOW_CHECK(x.ndim() == 2 && x.shape(1) == w.shape(1), ShapeError,
                 "{}: expected an input (batch, input_size = {}), but its shape is {}", where(), w.shape(1),
                 x.shape().str());
  ops::RecurrentState state;
  if (kind_ == Recurrence::kLstm) {
    const auto [h, c] = state_pair(*this, args[1]);
    state = {h.tensor(), c.tensor()};
  } else {
    state.h = args[1].tensor();
  }
  for (const Tensor* t : {&state.h, &state.c})
    UNDERTOW_CHECK(!t->defined() || t->shape() == (Shape{x.shape(0), hidden_}), ShapeError,
                   "{}: the state must have shape ({}, hidden_size = {}), but has {}", where(), x.shape(0), hidden_,
                   t->shape().str());
  const ops::RecurrentState next =
      ops::recurrent_step(kind_, x, state, {w, get_param("weight_hh"), get_param("bias_ih"), get_param("bias_hh")});
  if (kind_ != Recurrence::kLstm) return Value(next.h);
  return Value(Value::List{Value(next.h), Value(next.c)});
}

RNNCellImpl::RNNCellImpl(std::int64_t input_size, std::int64_t hidden_size, bool has_bias,
                         const std::string& nonlinearity, DType dtype)
    : RecurrentStepCell("RNNCell", with_nonlinearity("RNNCell", nonlinearity), input_size, hidden_size, has_bias,
                        dtype) {}

}  // namespace undertow::nn
