// SPDX-License-Identifier: Apache-2.0
// train/recurrent.h: RNN, LSTM and GRU layers and their single steps. Parameters carry MindSpore's and PyTorch's names:
// weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "undertow/ops/recurrent.h"
#include "undertow/train/cell.h"

namespace undertow::nn {

struct RecurrentOptions {
  std::int64_t num_layers = 1;
  bool has_bias = true;
  bool batch_first = false;  ///< x (B, T, input) instead of (T, B, input)
  double dropout = 0;        ///< on the outputs of all layers but the last, in training
  bool bidirectional = false;
  DType dtype = DType::kFloat32;
};
/// Inputs: x (T, B, input), hx (layers * directions, B, hidden) or for an LSTM the pair (h, c) (zeros when left out),
/// seq_length (B,). Results: (output (T, B, directions * hidden), last state like hx).
class RecurrentCell : public Cell {
 public:
  RecurrentCell(const char* cls, ops::Recurrence kind, std::int64_t input_size, std::int64_t hidden_size,
                const RecurrentOptions& options);
  Value construct_values(const std::vector<Value>& args) override;
  std::vector<std::string> input_names() const override { return {"x", "hx", "seq_length"}; }
  const RecurrentOptions& options() const { return options_; }

 private:
  ops::RecurrentWeights weights(std::int64_t layer, bool reverse) const;
  Tensor initial(const Value& given, const Tensor& x, const char* name) const;

  ops::Recurrence kind_;
  std::int64_t input_, hidden_;
  RecurrentOptions options_;
};

template <ops::Recurrence kKind>
class RecurrentOf : public RecurrentCell {
 public:
  RecurrentOf(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {})
      : RecurrentCell(kName, kKind, input_size, hidden_size, options) {}
  std::string cls_name() const override { return kName; }

 private:
  static constexpr const char* kName = kKind == ops::Recurrence::kLstm  ? "LSTM"
                                       : kKind == ops::Recurrence::kGru ? "GRU"
                                                                        : "RNN";
};
/// The nonlinearity is an option: "tanh" or "relu".
class RNNImpl : public RecurrentCell {
 public:
  RNNImpl(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {},
          const std::string& nonlinearity = "tanh");
  std::string cls_name() const override { return "RNN"; }
};

template <typename T>
class RecurrentHandle : public Handle<T> {
 public:
  RecurrentHandle(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {})
      : Handle<T>(make_ref<T>(input_size, hidden_size, options)) {}
  /// The output alone, from a state of zeros.
  Tensor operator()(const Tensor& x) const { return this->ref()->call({x}).list()[0].tensor(); }
};
using LSTM = RecurrentHandle<RecurrentOf<ops::Recurrence::kLstm>>;
using GRU = RecurrentHandle<RecurrentOf<ops::Recurrence::kGru>>;
using RNN = RecurrentHandle<RNNImpl>;

/// One step: x (B, input) and hx (B, hidden), for an LSTM the pair (h, c), to the new hx. Parameters: weight_ih,
/// weight_hh, bias_ih, bias_hh.
class RecurrentStepCell : public Cell {
 public:
  RecurrentStepCell(const char* cls, ops::Recurrence kind, std::int64_t input_size, std::int64_t hidden_size,
                    bool has_bias, DType dtype);
  Value construct_values(const std::vector<Value>& args) override;
  std::vector<std::string> input_names() const override { return {"x", "hx"}; }

 private:
  ops::Recurrence kind_;
  std::int64_t hidden_;
};
class LSTMCellImpl : public RecurrentStepCell {
 public:
  LSTMCellImpl(std::int64_t input_size, std::int64_t hidden_size, bool has_bias = true, DType dtype = DType::kFloat32)
      : RecurrentStepCell("LSTMCell", ops::Recurrence::kLstm, input_size, hidden_size, has_bias, dtype) {}
  std::string cls_name() const override { return "LSTMCell"; }
};
class GRUCellImpl : public RecurrentStepCell {
 public:
  GRUCellImpl(std::int64_t input_size, std::int64_t hidden_size, bool has_bias = true, DType dtype = DType::kFloat32)
      : RecurrentStepCell("GRUCell", ops::Recurrence::kGru, input_size, hidden_size, has_bias, dtype) {}
  std::string cls_name() const override { return "GRUCell"; }
};
class RNNCellImpl : public RecurrentStepCell {
 public:
  RNNCellImpl(std::int64_t input_size, std::int64_t hidden_size, bool has_bias = true,
              const std::string& nonlinearity = "tanh", DType dtype = DType::kFloat32);
  std::string cls_name() const override { return "RNNCell"; }
};

}  // namespace undertow::nn
