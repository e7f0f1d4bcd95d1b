// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/transformer.h"

#include <cmath>
#include <limits>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace {

Tensor optional_tensor(const std::vector<Value>& args, std::size_t i) {
  return i < args.size() && !args[i].is_none() ? args[i].tensor() : Tensor();
}
bool optional_flag(const std::vector<Value>& args, std::size_t i, bool missing) {
  return i < args.size() && !args[i].is_none() ? detail::scalar<bool>(args[i]) : missing;
}

Value or_none(const Tensor& t) { return t.defined() ? Value(t) : Value(); }

void check_count(const Cell& cell, const std::vector<Value>& args, std::size_t least, std::size_t most) {
  if (args.size() < least || args.size() > most) detail::wrong_count(cell, least, most, args.size());
}

/// Rows [begin, begin + count) of a parameter's first dimension.
Tensor rows(const Tensor& t, std::int64_t begin, std::int64_t count) {
  Shape s = t.shape();
  s[0] = count;
  std::vector<std::int64_t> from(t.shape().size(), 0);
  from[0] = begin;
  return ops::slice(t, from, std::vector<std::int64_t>(from.size(), 1), s);
}

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b) {
  const Tensor flat = ops::reshape(x, {x.size() / std::max<std::int64_t>(x.shape(-1), 1), x.shape(-1)});
  Tensor y = ops::matmul(flat, w, false, true);
  if (b.defined()) y = ops::add(y, b);
  std::vector<std::int64_t> shape = x.shape().to_vector();
  shape.back() = w.shape(0);
  return ops::reshape(y, shape);
}

}  // namespace

// ---- attention
MultiheadAttentionCell::MultiheadAttentionCell(std::int64_t embed_dim, std::int64_t num_heads,
                                               const MultiheadAttentionOptions& o)
    : embed_(embed_dim), heads_(num_heads), options_(o) {
  UNDERTOW_CHECK(embed_ > 0 && heads_ > 0 && embed_ % heads_ == 0, ValueError,
                 "MultiheadAttention: 'embed_dim' must be a multiple of 'num_heads', but they are {} and {}", embed_,
                 heads_);
  UNDERTOW_CHECK(o.dropout >= 0 && o.dropout < 1, ValueError,
                 "MultiheadAttention: 'dropout' must be in [0, 1) but is {}", o.dropout);
  const std::int64_t kdim = o.kdim.value_or(embed_), vdim = o.vdim.value_or(embed_);
  const auto insert = [&](const char* name, const Init& init, const Shape& shape) {
    insert_param(name, Parameter(common::initializer(init, shape, o.dtype), name));
  };
  if (kdim == embed_ && vdim == embed_) {
    insert("in_proj_weight", common::XavierUniform(), Shape{3 * embed_, embed_});
  } else {
    insert("q_proj_weight", common::XavierUniform(), Shape{embed_, embed_});
    insert("k_proj_weight", common::XavierUniform(), Shape{embed_, kdim});
    insert("v_proj_weight", common::XavierUniform(), Shape{embed_, vdim});
  }
  if (o.has_bias) insert("in_proj_bias", common::Zero(), Shape{3 * embed_});
  if (o.add_bias_kv) {
    insert("bias_k", common::XavierNormal(), Shape{1, 1, embed_});
    insert("bias_v", common::XavierNormal(), Shape{1, 1, embed_});
  }
  insert_child("out_proj", make_ref<DenseCell>(embed_, embed_, DenseOptions{.has_bias = o.has_bias, .dtype = o.dtype}));
}

std::vector<std::string> MultiheadAttentionCell::input_names() const {
  return {"query", "key", "value", "key_padding_mask", "need_weights", "attn_mask", "average_attn_weights"};
}

/// What is added to the scores (B, heads, T, S): broadcasts against them. Undefined without masks.
Tensor MultiheadAttentionCell::mask(const Masks& masks, std::int64_t batch, std::int64_t t, std::int64_t s,
                                    DType dtype) const {
  const auto additive = [&](const Tensor& m, const char* name) {
    UNDERTOW_CHECK(m.dtype() == DType::kBool || m.dtype() == DType::kUInt8 || is_floating(m.dtype()), TypeError,
                   "{}: {} must be bool or floating but is {}", where(), name, name_of(m.dtype()));
    if (is_floating(m.dtype())) return ops::cast(m, dtype);
    return ops::select(ops::not_equal(m, 0), ops::constant(-std::numeric_limits<double>::infinity(), dtype),
                       ops::constant(0, dtype));
  };
  Tensor sum;
  if (Tensor a = masks.attention; a.defined()) {
    const bool shared = a.ndim() == 2;
    UNDERTOW_CHECK(a.shape() == (shared ? Shape{t, s} : Shape{batch * heads_, t, s}), ShapeError,
                   "{}: attn_mask must be ({}, {}) or ({}, {}, {}), but has shape {}", where(), t, s, batch * heads_, t,
                   s, a.shape().str());
    a = additive(a, "attn_mask");
    sum = ops::reshape(a, shared ? std::vector<std::int64_t>{1, 1, t, s} : std::vector{batch, heads_, t, s});
  }
  if (const Tensor& k = masks.key_padding; k.defined()) {
    UNDERTOW_CHECK(k.shape() == (Shape{batch, s}), ShapeError,
                   "{}: key_padding_mask must be ({}, {}), but has shape {}", where(), batch, s, k.shape().str());
    const Tensor padding = ops::reshape(additive(k, "key_padding_mask"), {batch, 1, 1, s});
    sum = sum.defined() ? ops::add(sum, padding) : padding;
  }
  return sum;
}

Tensor MultiheadAttentionCell::attend(const Tensor& query, const Tensor& key, const Tensor& value, const Masks& given,
                                      Tensor* weights) const {
  UNDERTOW_CHECK(
      (query.ndim() == 2 || query.ndim() == 3) && key.ndim() == query.ndim() && value.ndim() == query.ndim() &&
          query.shape(-1) == embed_,
      ShapeError,
      "{}: query must have 2 or 3 dimensions with embed_dim = {} last, and key and value as many dimensions, "
      "but the shapes are {}, {} and {}",
      where(), embed_, query.shape().str(), key.shape().str(), value.shape().str());
  Tensor q = query, k = key, v = value;
  Masks masks = given;
  const bool batched = q.ndim() == 3, batch_last = batched && !options_.batch_first;
  if (!batched) {
    for (Tensor* t : {&q, &k, &v}) *t = ops::expand_dims(*t, 0);
    if (masks.key_padding.defined()) masks.key_padding = ops::expand_dims(masks.key_padding, 0);
  }
  // Projections of (B, T, E) or (T, B, E) alike; same tensors share one product.
  const Parameter packed = get_param("in_proj_weight"), bias = get_param("in_proj_bias");
  const auto part_bias = [&](std::int64_t i) { return bias.defined() ? rows(bias, i * embed_, embed_) : Tensor(); };
  const bool same = packed.defined() && query.impl() == key.impl() && key.impl() == value.impl();
  if (same) {
    const Tensor all = linear(q, packed, bias);
    const auto part = [&](std::int64_t i) {
      return ops::slice(all, {0, 0, i * embed_}, {1, 1, 1}, Shape{all.shape(0), all.shape(1), embed_});
    };
    q = part(0), k = part(1), v = part(2);
  } else {
    const auto weight = [&](std::int64_t i, const char* name) {
      return packed.defined() ? rows(packed, i * embed_, embed_) : Tensor(get_param(name));
    };
    q = linear(q, weight(0, "q_proj_weight"), part_bias(0));
    k = linear(k, weight(1, "k_proj_weight"), part_bias(1));
    v = linear(v, weight(2, "v_proj_weight"), part_bias(2));
  }
  if (batch_last)
    for (Tensor* t : {&q, &k, &v}) *t = ops::swapaxes(*t, 0, 1);
  const std::int64_t batch = q.shape(0), t = q.shape(1), head = embed_ / heads_;
  const auto longer = [&](const Tensor& x, const Tensor& row) {
    return ops::concat({x, ops::broadcast_to(row, Shape{batch, 1, embed_})}, 1);
  };
  const auto wider = [](Tensor& m) {  // a further column that is looked at
    if (!m.defined()) return;
    std::vector<std::int64_t> low(m.shape().size(), 0), high = low;
    high.back() = 1;
    if (m.dtype() == DType::kBool) m = ops::cast(ops::pad(ops::cast(m, DType::kUInt8), low, high), DType::kBool);
    else m = ops::pad(m, low, high);
  };
  if (options_.add_bias_kv) {
    k = longer(k, get_param("bias_k")), v = longer(v, get_param("bias_v"));
    wider(masks.attention), wider(masks.key_padding);
  }
  if (options_.add_zero_attn) {
    const Tensor zero = ops::full(Shape{1, 1, embed_}, 0, k.dtype());
    k = longer(k, zero), v = longer(v, zero);
    wider(masks.attention), wider(masks.key_padding);
  }
  const std::int64_t s = k.shape(1);
  const auto by_head = [&](const Tensor& x) {
    return ops::transpose(ops::reshape(x, {batch, x.shape(1), heads_, head}), {0, 2, 1, 3});
  };
  Tensor scores =
      ops::matmul(by_head(ops::mul(q, 1.0 / std::sqrt(static_cast<double>(head)))), by_head(k), false, true);
  if (const Tensor m = mask(masks, batch, t, s, scores.dtype()); m.defined()) scores = ops::add(scores, m);
  Tensor attention = ops::softmax(scores);
  if (training() && options_.dropout > 0) attention = ops::dropout(attention, options_.dropout);
  if (weights) *weights = batched ? attention : ops::squeeze(attention, {0});
  Tensor y = ops::reshape(ops::transpose(ops::matmul(attention, by_head(v)), {0, 2, 1, 3}), {batch, t, embed_});
  if (batch_last) y = ops::swapaxes(y, 0, 1);
  y = (*get_child("out_proj"))(y);
  return batched ? y : ops::squeeze(y, {0});
}

Value MultiheadAttentionCell::construct_values(const std::vector<Value>& args) {
  check_count(*this, args, 3, 7);
  const bool need_weights = optional_flag(args, 4, true), average = optional_flag(args, 6, true);
  Tensor weights;
  const Tensor y = attend(args[0].tensor(), args[1].tensor(), args[2].tensor(),
                          {optional_tensor(args, 3), optional_tensor(args, 5)}, need_weights ? &weights : nullptr);
  if (!need_weights) return Value(Value::List{Value(y)});
  if (average) weights = ops::reduce_mean(weights, {-3});
  return Value(Value::List{Value(y), Value(weights)});
}

// ---- layers
TransformerLayerBase::TransformerLayerBase(const char* cls, std::int64_t d_model, std::int64_t nhead,
                                           const TransformerLayerOptions& o, bool decoder)
    : d_model_(d_model), nhead_(nhead), options_(o) {
  UNDERTOW_CHECK(o.dim_feedforward > 0, ValueError, "{}: 'dim_feedforward' must be positive but is {}", cls,
                 o.dim_feedforward);
  UNDERTOW_CHECK(o.dropout >= 0 && o.dropout < 1, ValueError, "{}: 'dropout' must be in [0, 1) but is {}", cls,
                 o.dropout);
  const auto attention = [&] {
    return make_ref<MultiheadAttentionCell>(
        d_model, nhead,
        MultiheadAttentionOptions{.dropout = o.dropout, .batch_first = o.batch_first, .dtype = o.dtype});
  };
  const auto norm = [&] {
    return make_ref<LayerNormCell>(std::vector<std::int64_t>{d_model},
                                   LayerNormOptions{.epsilon = o.layer_norm_eps, .dtype = o.dtype});
  };
  const auto drop = [&] { return make_ref<DropoutCell>(DropoutOptions{.p = o.dropout}); };
  insert_child("self_attn", attention());
  if (decoder) insert_child("multihead_attn", attention());
  insert_child("dense1", make_ref<DenseCell>(d_model, o.dim_feedforward, DenseOptions{.dtype = o.dtype}));
  insert_child("dropout", drop());
  insert_child("dense2", make_ref<DenseCell>(o.dim_feedforward, d_model, DenseOptions{.dtype = o.dtype}));
  for (int i = 1; i <= (decoder ? 3 : 2); ++i) insert_child(fmt::format("norm{}", i), norm());
  for (int i = 1; i <= (decoder ? 3 : 2); ++i) insert_child(fmt::format("dropout{}", i), drop());
  UNDERTOW_CHECK(o.activation.cell, ValueError, "{}: 'activation' must not be empty", cls);
  insert_child("activation", o.activation.cell);
}

template <typename F>
Tensor TransformerLayerBase::residual(const Tensor& x, int i, F&& branch) {
  Cell& norm = *get_child(fmt::format("norm{}", i));
  Cell& drop = *get_child(fmt::format("dropout{}", i));
  if (options_.norm_first) return ops::add(x, drop(branch(norm(x))));
  return norm(ops::add(x, drop(branch(x))));
}

Tensor TransformerLayerBase::attention(const char* name, const Tensor& x, const Tensor& memory, const Masks& masks) {
  const Value result = get_child(name)->call(
      {x, memory, memory, or_none(masks.key_padding), Value(false), or_none(masks.attention), Value()});
  return result.list()[0].tensor();
}

Tensor TransformerLayerBase::feed_forward(const Tensor& x) {
  const Tensor inner = (*get_child("dropout"))((*get_child("activation"))((*get_child("dense1"))(x)));
  return (*get_child("dense2"))(inner);
}

Value TransformerEncoderLayerCell::construct_values(const std::vector<Value>& args) {
  check_count(*this, args, 1, 3);
  const Masks masks{optional_tensor(args, 2), optional_tensor(args, 1)};
  Tensor x = residual(args[0].tensor(), 1, [&](const Tensor& t) { return attention("self_attn", t, t, masks); });
  return Value(residual(x, 2, [&](const Tensor& t) { return feed_forward(t); }));
}

Value TransformerDecoderLayerCell::construct_values(const std::vector<Value>& args) {
  check_count(*this, args, 2, 6);
  const Masks own{optional_tensor(args, 4), optional_tensor(args, 2)};
  const Masks other{optional_tensor(args, 5), optional_tensor(args, 3)};
  const Tensor memory = args[1].tensor();
  Tensor x = residual(args[0].tensor(), 1, [&](const Tensor& t) { return attention("self_attn", t, t, own); });
  x = residual(x, 2, [&](const Tensor& t) { return attention("multihead_attn", t, memory, other); });
  return Value(residual(x, 3, [&](const Tensor& t) { return feed_forward(t); }));
}

// ---- stacks
namespace {

template <typename L>
Ref<Cell> layers_like(const char* cls, const L& layer, std::int64_t n) {
  UNDERTOW_CHECK(n > 0, ValueError, "{}: 'num_layers' must be positive but is {}", cls, n);
  auto list = make_ref<CellListImpl>();
  for (std::int64_t i = 0; i < n; ++i) list->append(make_ref<L>(layer.d_model(), layer.nhead(), layer.options()));
  return list;
}

/// The first input through all layers, with the others as they are; then the norm.
Value run_stack(const Cell& cell, std::vector<Value> args) {
  for (const auto& [_, layer] : cell.get_child("layers")->children()) args[0] = layer->call(args);
  if (const Ref<Cell> norm = cell.get_child("norm")) args[0] = norm->call({args[0]});
  return args[0];
}

}  // namespace

TransformerEncoderCell::TransformerEncoderCell(const Ref<TransformerEncoderLayerCell>& layer, std::int64_t num_layers,
                                               Ref<Cell> norm) {
  insert_child("layers", layers_like("TransformerEncoder", *layer, num_layers));
  if (norm) insert_child("norm", std::move(norm));
}
Value TransformerEncoderCell::construct_values(const std::vector<Value>& args) {
  check_count(*this, args, 1, 3);
  return run_stack(*this, args);
}

TransformerDecoderCell::TransformerDecoderCell(const Ref<TransformerDecoderLayerCell>& layer, std::int64_t num_layers,
                                               Ref<Cell> norm) {
  insert_child("layers", layers_like("TransformerDecoder", *layer, num_layers));
  if (norm) insert_child("norm", std::move(norm));
}
Value TransformerDecoderCell::construct_values(const std::vector<Value>& args) {
  check_count(*this, args, 2, 6);
  return run_stack(*this, args);
}

TransformerCell::TransformerCell(std::int64_t d_model, std::int64_t nhead, const TransformerOptions& o)
    : d_model_(d_model), batch_first_(o.batch_first) {
  const TransformerLayerOptions layer{o.dim_feedforward, o.dropout,    o.activation, o.layer_norm_eps,
                                      o.batch_first,     o.norm_first, o.dtype};
  const auto norm = [&] {
    return make_ref<LayerNormCell>(std::vector<std::int64_t>{d_model},
                                   LayerNormOptions{.epsilon = o.layer_norm_eps, .dtype = o.dtype});
  };
  insert_child("encoder", o.custom_encoder ? o.custom_encoder
                                           : Ref<Cell>(make_ref<TransformerEncoderCell>(
                                                 make_ref<TransformerEncoderLayerCell>(d_model, nhead, layer),
                                                 o.num_encoder_layers, norm())));
  insert_child("decoder", o.custom_decoder ? o.custom_decoder
                                           : Ref<Cell>(make_ref<TransformerDecoderCell>(
                                                 make_ref<TransformerDecoderLayerCell>(d_model, nhead, layer),
                                                 o.num_decoder_layers, norm())));
  for (const Parameter& p : get_parameters())
    if (p.ndim() > 1) p.Tensor::assign(common::initializer(common::XavierUniform(), p.shape(), p.dtype()));
}

std::vector<std::string> TransformerCell::input_names() const {
  return {"src",
          "tgt",
          "src_mask",
          "tgt_mask",
          "memory_mask",
          "src_key_padding_mask",
          "tgt_key_padding_mask",
          "memory_key_padding_mask"};
}

Value TransformerCell::construct_values(const std::vector<Value>& given) {
  check_count(*this, given, 2, 8);
  std::vector<Value> args = given;
  args.resize(8);
  const Tensor src = args[0].tensor(), tgt = args[1].tensor();
  const int batch = batch_first_ ? 0 : 1;
  UNDERTOW_CHECK(
      src.ndim() == tgt.ndim() && (src.ndim() == 2 || (src.ndim() == 3 && src.shape(batch) == tgt.shape(batch))),
      ShapeError, "{}: src and tgt must have the same batch, but their shapes are {} and {}", where(),
      src.shape().str(), tgt.shape().str());
  UNDERTOW_CHECK(src.shape(-1) == d_model_ && tgt.shape(-1) == d_model_, ShapeError,
                 "{}: src and tgt must have d_model = {} features, but their shapes are {} and {}", where(), d_model_,
                 src.shape().str(), tgt.shape().str());
  const Value memory = get_child("encoder")->call({args[0], args[2], args[5]});
  return get_child("decoder")->call({args[1], memory, args[3], args[4], args[6], args[7]});
}

}  // namespace undertow::nn
