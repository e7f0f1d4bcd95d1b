// SPDX-License-Identifier: Apache-2.0
// nn: recurrent layers and transformers.
#include "python/src/bind_layer.h"
#include "undertow/train/recurrent.h"
#include "undertow/train/transformer.h"

namespace undertow::python {
namespace {

using nn::Cell;
template <typename T>
using Self = nb::pointer_and_handle<T>;

constexpr const char* kLayerDoc =
    "Inputs x (T, B, input), hx (layers * directions, B, hidden) (zeros when left out; for an LSTM the pair (h, c)), "
    "seq_length (B,); gives (output, last state). Parameters: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ...";

void remember(nb::handle self, std::int64_t input, std::int64_t hidden, const nn::RecurrentOptions& o) {
  nb::setattr(self, "input_size", nb::cast(input));
  nb::setattr(self, "hidden_size", nb::cast(hidden));
  nb::setattr(self, "num_layers", nb::cast(o.num_layers));
  nb::setattr(self, "has_bias", nb::cast(o.has_bias));
  nb::setattr(self, "batch_first", nb::cast(o.batch_first));
  nb::setattr(self, "dropout", nb::cast(o.dropout));
  nb::setattr(self, "bidirectional", nb::cast(o.bidirectional));
}

template <typename T, typename... Extra>
void bind_recurrent(nb::module_& m, const char* name, Extra... extra) {
  auto c = cell_class<T, Cell>(m, name, kLayerDoc);
  const auto init = [](Self<T> self, std::int64_t input, std::int64_t hidden, std::int64_t layers, bool bias,
                       bool batch_first, double dropout, bool bidirectional, DType dtype, auto... more) {
    const nn::RecurrentOptions o{layers, bias, batch_first, dropout, bidirectional, dtype};
    construct_cell(self, input, hidden, o, more...);
    remember(self.h, input, hidden, o);
  };
  const auto define = [&](auto f, auto... more) {
    c.def("__init__", f, "input_size"_a, "hidden_size"_a, "num_layers"_a = 1, "has_bias"_a = true,
          "batch_first"_a = false, "dropout"_a = 0.0, "bidirectional"_a = false,
          "dtype"_a = dtype_object(DType::kFloat32), more...);
  };
  if constexpr (sizeof...(Extra) == 0) {
    define([init](Self<T> s, std::int64_t i, std::int64_t h, std::int64_t l, bool b, bool f, double d, bool bi,
                  DType t) { init(s, i, h, l, b, f, d, bi, t); });
  } else {
    define([init](Self<T> s, std::int64_t i, std::int64_t h, std::int64_t l, bool b, bool f, double d, bool bi, DType t,
                  const std::string& n) { init(s, i, h, l, b, f, d, bi, t, n); },
           extra...);
  }
}

template <typename T>
void bind_step(nb::module_& m, const char* name) {
  cell_class<T, Cell>(m, name, "One step: x (B, input) and the state to the new state.")
      .def(
          "__init__",
          [](Self<T> self, std::int64_t input, std::int64_t hidden, bool bias, DType dtype) {
            construct_cell(self, input, hidden, bias, dtype);
            nb::setattr(self.h, "input_size", nb::cast(input));
            nb::setattr(self.h, "hidden_size", nb::cast(hidden));
          },
          "input_size"_a, "hidden_size"_a, "has_bias"_a = true, "dtype"_a = dtype_object(DType::kFloat32));
}

}  // namespace

void bind_recurrent_layers(nb::module_& m) {
  bind_recurrent<nn::RecurrentOf<ops::Recurrence::kLstm>>(m, "LSTM");
  bind_recurrent<nn::RecurrentOf<ops::Recurrence::kGru>>(m, "GRU");
  bind_recurrent<nn::RNNImpl>(m, "RNN", "nonlinearity"_a = "tanh");
  bind_step<nn::LSTMCellImpl>(m, "LSTMCell");
  bind_step<nn::GRUCellImpl>(m, "GRUCell");
  cell_class<nn::RNNCellImpl, Cell>(m, "RNNCell", "One step: x (B, input) and the state (B, hidden) to the new state.")
      .def(
          "__init__",
          [](Self<nn::RNNCellImpl> self, std::int64_t input, std::int64_t hidden, bool bias,
             const std::string& nonlinearity, DType dtype) {
            construct_cell(self, input, hidden, bias, nonlinearity, dtype);
            nb::setattr(self.h, "input_size", nb::cast(input));
            nb::setattr(self.h, "hidden_size", nb::cast(hidden));
          },
          "input_size"_a, "hidden_size"_a, "has_bias"_a = true, "nonlinearity"_a = "tanh",
          "dtype"_a = dtype_object(DType::kFloat32));
}

void bind_transformer_layers(nb::module_& m) {
  {
    using O = nn::MultiheadAttentionOptions;
    bind_layer<nn::MultiheadAttentionCell, O>(
        m, "MultiheadAttention",
        "Inputs query, key, value (T, B, E), key_padding_mask, need_weights=True, attn_mask, "
        "average_attn_weights=True; gives (output, weights), or (output,) without need_weights.",
        At<std::int64_t, std::int64_t>{{"embed_dim", "num_heads"}}, field("dropout", &O::dropout),
        field("has_bias", &O::has_bias), field("add_bias_kv", &O::add_bias_kv),
        field("add_zero_attn", &O::add_zero_attn), field("kdim", &O::kdim), field("vdim", &O::vdim),
        field("batch_first", &O::batch_first), field("dtype", &O::dtype));
  }
  const auto layer = [&]<typename T>(std::type_identity<T>, const char* name, const char* doc) {
    cell_class<T, Cell>(m, name, doc)
        .def(
            "__init__",
            [](Self<T> self, std::int64_t d_model, std::int64_t nhead, std::int64_t feedforward, double dropout,
               const ActivationArg& activation, double eps, bool batch_first, bool norm_first, DType dtype) {
              construct_cell(self, d_model, nhead,
                             nn::TransformerLayerOptions{feedforward, dropout, activation.activation, eps, batch_first,
                                                         norm_first, dtype});
              nb::setattr(self.h, "d_model", nb::cast(d_model));
              nb::setattr(self.h, "nhead", nb::cast(nhead));
              nb::setattr(self.h, "norm_first", nb::cast(norm_first));
              nb::setattr(self.h, "batch_first", nb::cast(batch_first));
            },
            "d_model"_a, "nhead"_a, "dim_feedforward"_a = 2048, "dropout"_a = 0.1, "activation"_a = "relu",
            "layer_norm_eps"_a = 1e-5, "batch_first"_a = false, "norm_first"_a = false,
            "dtype"_a = dtype_object(DType::kFloat32));
  };
  layer(std::type_identity<nn::TransformerEncoderLayerCell>{}, "TransformerEncoderLayer",
        "Self-attention and a feed-forward network. Inputs src, src_mask, src_key_padding_mask.");
  layer(std::type_identity<nn::TransformerDecoderLayerCell>{}, "TransformerDecoderLayer",
        "Self-attention, attention to the memory, and a feed-forward network. Inputs tgt, memory, tgt_mask, "
        "memory_mask, tgt_key_padding_mask, memory_key_padding_mask.");
  const auto stack = [&]<typename T, typename L>(std::type_identity<T>, std::type_identity<L>, const char* name,
                                                 const char* argument) {
    cell_class<T, Cell>(m, name, "Layers like the given one, one after the other, and a final norm if given.")
        .def(
            "__init__",
            [](Self<T> self, const Ref<L>& like, std::int64_t n, const Ref<Cell>& norm) {
              construct_cell(self, like, n, norm);
              nb::setattr(self.h, "num_layers", nb::cast(n));
            },
            nb::arg(argument), "num_layers"_a, "norm"_a.none() = nb::none());
  };
  stack(std::type_identity<nn::TransformerEncoderCell>{}, std::type_identity<nn::TransformerEncoderLayerCell>{},
        "TransformerEncoder", "encoder_layer");
  stack(std::type_identity<nn::TransformerDecoderCell>{}, std::type_identity<nn::TransformerDecoderLayerCell>{},
        "TransformerDecoder", "decoder_layer");
  cell_class<nn::TransformerCell, Cell>(
      m, "Transformer",
      "Encoder and decoder. Inputs src, tgt, src_mask, tgt_mask, memory_mask, src_key_padding_mask, "
      "tgt_key_padding_mask, memory_key_padding_mask.")
      .def(
          "__init__",
          [](Self<nn::TransformerCell> self, std::int64_t d_model, std::int64_t nhead, std::int64_t encoders,
             std::int64_t decoders, std::int64_t feedforward, double dropout, const ActivationArg& activation,
             const Ref<Cell>& encoder, const Ref<Cell>& decoder, double eps, bool batch_first, bool norm_first,
             DType dtype) {
            construct_cell(self, d_model, nhead,
                           nn::TransformerOptions{encoders, decoders, feedforward, dropout, activation.activation,
                                                  encoder, decoder, eps, batch_first, norm_first, dtype});
            nb::setattr(self.h, "d_model", nb::cast(d_model));
            nb::setattr(self.h, "nhead", nb::cast(nhead));
            nb::setattr(self.h, "batch_first", nb::cast(batch_first));
          },
          "d_model"_a = 512, "nhead"_a = 8, "num_encoder_layers"_a = 6, "num_decoder_layers"_a = 6,
          "dim_feedforward"_a = 2048, "dropout"_a = 0.1, "activation"_a = "relu",
          "custom_encoder"_a.none() = nb::none(), "custom_decoder"_a.none() = nb::none(), "layer_norm_eps"_a = 1e-5,
          "batch_first"_a = false, "norm_first"_a = false, "dtype"_a = dtype_object(DType::kFloat32));
}

}  // namespace undertow::python
