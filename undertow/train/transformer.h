// SPDX-License-Identifier: Apache-2.0
// train/transformer.h: multi-head attention and the layers of a transformer (Vaswani et al., 2017). Inputs are
// (T, B, embed_dim), with batch_first (B, T, embed_dim), or without a batch (T, embed_dim).
//
// Masks: bool (True: not looked at) or added to the scores. attn_mask (T, S) or (B * heads, T, S); key_padding_mask
// (B, S), or (S,) without a batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "undertow/train/layers.h"
#include "undertow/train/norm_layers.h"

namespace undertow::nn {

struct MultiheadAttentionOptions {
  double dropout = 0.0;  ///< on the attention weights, in training
  bool has_bias = true;
  bool add_bias_kv = false;                ///< a trained further key and value
  bool add_zero_attn = false;              ///< a further key and value of zeros
  std::optional<std::int64_t> kdim, vdim;  ///< default: embed_dim
  bool batch_first = false;
  DType dtype = DType::kFloat32;
};
/// Inputs: query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights. Results: the output, and
/// with need_weights (the default) the attention weights (B, T, S), or (B, heads, T, S) when not averaged.
/// Parameters: in_proj_weight (3 E, E) (q_proj_weight, k_proj_weight, v_proj_weight where kdim or vdim differ),
/// in_proj_bias, bias_k, bias_v; child out_proj.
class MultiheadAttentionCell : public Cell {
 public:
  MultiheadAttentionCell(std::int64_t embed_dim, std::int64_t num_heads, const MultiheadAttentionOptions& options = {});
  Value construct_values(const std::vector<Value>& args) override;
  std::vector<std::string> input_names() const override;
  std::string cls_name() const override { return "MultiheadAttention"; }

  struct Masks {
    Tensor key_padding, attention;
  };
  /// The output, and (when `weights` is given) the weights (B, heads, T, S).
  Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const Masks& masks, Tensor* weights) const;

 private:
  Tensor mask(const Masks& masks, std::int64_t batch, std::int64_t t, std::int64_t s, DType dtype) const;

  std::int64_t embed_, heads_;
  MultiheadAttentionOptions options_;
};
class MultiheadAttention : public Handle<MultiheadAttentionCell> {
 public:
  MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads, const MultiheadAttentionOptions& options = {})
      : Handle(make_ref<MultiheadAttentionCell>(embed_dim, num_heads, options)) {}
};

struct TransformerLayerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  Activation activation = "relu";
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  DType dtype = DType::kFloat32;
};
/// Children: self_attn, (multihead_attn,) dense1, dropout, dense2, norm1, norm2 (, norm3), dropout1, dropout2
/// (, dropout3), activation.
class TransformerLayerBase : public Cell {
 public:
  std::int64_t d_model() const { return d_model_; }
  std::int64_t nhead() const { return nhead_; }
  const TransformerLayerOptions& options() const { return options_; }

 protected:
  TransformerLayerBase(const char* cls, std::int64_t d_model, std::int64_t nhead,
                       const TransformerLayerOptions& options, bool decoder);
  using Masks = MultiheadAttentionCell::Masks;
  /// x plus its branch, normalised before or after: norm{i} and dropout{i}.
  template <typename F>
  Tensor residual(const Tensor& x, int i, F&& branch);
  Tensor attention(const char* name, const Tensor& x, const Tensor& memory, const Masks& masks);
  Tensor feed_forward(const Tensor& x);

 private:
  std::int64_t d_model_, nhead_;
  TransformerLayerOptions options_;
};
/// Inputs: src, src_mask, src_key_padding_mask.
class TransformerEncoderLayerCell : public TransformerLayerBase {
 public:
  TransformerEncoderLayerCell(std::int64_t d_model, std::int64_t nhead, const TransformerLayerOptions& options = {})
      : TransformerLayerBase("TransformerEncoderLayer", d_model, nhead, options, false) {}
  Value construct_values(const std::vector<Value>& args) override;
  std::vector<std::string> input_names() const override { return {"src", "src_mask", "src_key_padding_mask"}; }
  std::string cls_name() const override { return "TransformerEncoderLayer"; }
};
/// Inputs: tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask.
class TransformerDecoderLayerCell : public TransformerLayerBase {
 public:
  TransformerDecoderLayerCell(std::int64_t d_model, std::int64_t nhead, const TransformerLayerOptions& options = {})
      : TransformerLayerBase("TransformerDecoderLayer", d_model, nhead, options, true) {}
  Value construct_values(const std::vector<Value>& args) override;
  std::vector<std::string> input_names() const override {
    return {"tgt", "memory", "tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask"};
  }
  std::string cls_name() const override { return "TransformerDecoderLayer"; }
};

/// `num_layers` new layers made like the given one (its values are not copied), and a final norm if there is one.
/// Children: layers, norm.
class TransformerEncoderCell : public Cell {
 public:
  TransformerEncoderCell(const Ref<TransformerEncoderLayerCell>& layer, std::int64_t num_layers, Ref<Cell> norm = {});
  Value construct_values(const std::vector<Value>& args) override;
  std::vector<std::string> input_names() const override { return {"src", "src_mask", "src_key_padding_mask"}; }
  std::string cls_name() const override { return "TransformerEncoder"; }
};
class TransformerDecoderCell : public Cell {
 public:
  TransformerDecoderCell(const Ref<TransformerDecoderLayerCell>& layer, std::int64_t num_layers, Ref<Cell> norm = {});
  Value construct_values(const std::vector<Value>& args) override;
  std::vector<std::string> input_names() const override {
    return {"tgt", "memory", "tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask"};
  }
  std::string cls_name() const override { return "TransformerDecoder"; }
};

struct TransformerOptions {
  std::int64_t num_encoder_layers = 6, num_decoder_layers = 6, dim_feedforward = 2048;
  double dropout = 0.1;
  Activation activation = "relu";
  Ref<Cell> custom_encoder, custom_decoder;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  DType dtype = DType::kFloat32;
};
/// Inputs: src, tgt, src_mask, tgt_mask, memory_mask, src_key_padding_mask, tgt_key_padding_mask,
/// memory_key_padding_mask. Children: encoder, decoder. All weights of two dimensions start as xavier_uniform.
class TransformerCell : public Cell {
 public:
  explicit TransformerCell(std::int64_t d_model = 512, std::int64_t nhead = 8, const TransformerOptions& options = {});
  Value construct_values(const std::vector<Value>& args) override;
  std::vector<std::string> input_names() const override;
  std::string cls_name() const override { return "Transformer"; }

 private:
  std::int64_t d_model_;
  bool batch_first_;
};

}  // namespace undertow::nn
