// SPDX-License-Identifier: Apache-2.0
// Convolution and its two gradients by oneDNN. x and y are dense NCHW or NHWC (NCDHW in three dimensions), or in blocks
// of channels (ops/channel_blocks.h); the weights dense OIHW.
//
// Layout rule (measured): blocks are used as they are, wherever the library has a kernel for them. Other activations
// are offered as "any" and reordered inside the kernel, because the library's kernels for plain NCHW go through im2col,
// and those for NHWC are slower by a third without AVX-512. Channels-last memory is used as it is where AVX-512 takes
// it at full speed, and both plain layouts are for 1x1 convolutions, which are a matrix product there (6.1 ms against
// 8.0 ms for 64 -> 256 channels at 56x56, batch 8, AVX2). Weights are offered as "any".
#include "undertow/backend/cpu/compute_lock.h"
#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/onednn_common.h"
#include "undertow/base/check.h"
#include "undertow/ops/channel_blocks.h"

namespace undertow::backend::cpu {
namespace {

struct Setup {
  dnnl_memory_desc_t x, w, y;              // as the node has them
  dnnl_memory_desc_t x_any, w_any, y_any;  // as offered
  dnnl_dims_t strides, dilations, low, high;
  bool may_reorder = false;  // if there is no kernel for what is offered
};

using Dims = std::vector<std::int64_t>;

/// From the shapes of x, w and y.
Setup setup(const NodeView& node, const Shape& x_shape, const Shape& w_shape, const Shape& y_shape) {
  Setup s{};
  const DType dtype = node.in[0].dtype;
  const int spatial = w_shape.rank() - 2;
  const bool nhwc = node.text("layout") == "NHWC";
  const std::int64_t block = ops::channel_block(node.text("layout"));
  const std::int64_t groups = node.integer("groups");
  const auto &strides = node.ints("strides"), &pads = node.ints("pads"), &dilations = node.ints("dilations");
  const auto channels_first = [&](const Shape& t) {
    if (block) return ops::without_blocks(t).to_vector();
    Dims d{t[0], t[nhwc ? spatial + 1 : 1]};
    for (int i = 0; i < spatial; ++i) d.push_back(t[(nhwc ? 1 : 2) + i]);
    return d;
  };
  Dims w = w_shape.to_vector();
  if (groups != 1) {
    w[0] /= groups;
    w.insert(w.begin(), groups);
  }
  bool pointwise = dtype == DType::kFloat32 && groups == 1;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    pointwise = pointwise && w_shape[2 + static_cast<int>(i)] == 1 && strides[i] == 1 && pads[2 * i] <= 0 &&
                pads[2 * i + 1] <= 0;
    s.strides[i] = strides[i];
    s.dilations[i] = dilations[i] - 1;
    s.low[i] = pads[2 * i], s.high[i] = pads[2 * i + 1];
  }
  const auto tag = spatial == 3 ? dnnl_ncdhw : nhwc ? dnnl_nhwc : dnnl_nchw;
  const auto weights = spatial == 3 ? (groups == 1 ? dnnl_oidhw : dnnl_goidhw) : (groups == 1 ? dnnl_oihw : dnnl_goihw);
  const Dims x = channels_first(x_shape), y = channels_first(y_shape);
  const auto tag_of = [&](const Shape& t) {
    return !block || t.rank() != 5 ? tag : block == 16 ? dnnl_nChw16c : dnnl_nChw8c;
  };
  s.x = dnnl_plain(x, dtype, tag_of(x_shape));
  s.y = dnnl_plain(y, dtype, tag_of(y_shape));
  s.may_reorder = block != 0;
  const bool as_it_is = block || pointwise || (nhwc && dnnl_has_avx512());
  s.x_any = as_it_is ? s.x : dnnl_plain(x, dtype, dnnl_format_tag_any);
  s.y_any = as_it_is ? s.y : dnnl_plain(y, dtype, dnnl_format_tag_any);
  s.w = dnnl_plain(w, dtype, weights);
  s.w_any = dnnl_plain(w, dtype, dnnl_format_tag_any);
  return s;
}

enum class Direction { kForward, kGradInput, kGradWeight };

/// Null when the library has nothing fast for what is offered.
DnnlPrimitiveDesc describe_offered(const Setup& s, Direction direction) {
  dnnl_convolution_desc_t d;
  constexpr auto kDirect = dnnl_convolution_direct;
  dnnl_check(dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, kDirect, &s.x_any, &s.w_any, nullptr,
                                                        &s.y_any, s.strides, s.dilations, s.low, s.high),
             "describe a convolution");
  DnnlPrimitiveDesc forward = DnnlBuilder::describe(&d);
  if (!forward || direction == Direction::kForward) return forward;
  const dnnl_status_t status =
      direction == Direction::kGradInput
          ? dnnl_dilated_convolution_backward_data_desc_init(&d, kDirect, &s.x_any, &s.w_any, &s.y_any, s.strides,
                                                             s.dilations, s.low, s.high)
          : dnnl_dilated_convolution_backward_weights_desc_init(&d, kDirect, &s.x_any, &s.w_any, nullptr, &s.y_any,
                                                                s.strides, s.dilations, s.low, s.high);
  dnnl_check(status, "describe a convolution");
  return DnnlBuilder::describe(&d, forward.get());
}

/// The convolution of a node whose operands are of these shapes. `x`, `w` and `y` say which argument is which.
Choice make(const NodeView& node, Direction direction, int x, int w, int y) {
  const DType dtype = node.in[0].dtype;
  if (!dnnl_native(dtype)) return Choice::decline(fmt::format("no native {}", name_of(dtype)));
  const ComputeLock lock;
  const auto shape = [&](int arg) {
    return arg < 2 ? node.in[static_cast<std::size_t>(arg)].shape : node.out[0].shape;
  };
  Setup s = setup(node, shape(x), shape(w), shape(y));
  auto pd = describe_offered(s, direction);
  if (!pd && s.may_reorder) {
    s.x_any.format_kind = s.y_any.format_kind = dnnl_format_kind_any;
    pd = describe_offered(s, direction);
  }
  if (!pd) return Choice::decline("oneDNN has no fast implementation");

  struct Operand {
    int arg, name;
    dnnl_query_t query;
    const dnnl_memory_desc_t* have;
  };
  const bool forward = direction == Direction::kForward, to_x = direction == Direction::kGradInput,
             to_w = direction == Direction::kGradWeight;
  const Operand operands[] = {
      {x, to_x ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, to_x ? dnnl_query_diff_src_md : dnnl_query_src_md, &s.x},
      {w, to_w ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, to_w ? dnnl_query_diff_weights_md : dnnl_query_weights_md,
       &s.w},
      {y, forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, forward ? dnnl_query_dst_md : dnnl_query_diff_dst_md, &s.y}};
  DnnlBuilder b(node);
  std::vector<DnnlBuilder::Operand> list;
  for (const Operand& o : operands) {
    const auto want = b.query(pd, o.query);
    list.push_back({o.name, want, o.arg < 2 ? b.input({o.arg}, *o.have, want) : b.output({o.arg}, *o.have, want)});
  }
  b.add(pd, list);
  for (std::size_t i = 0; i < list.size(); ++i)
    if (operands[i].arg == 2) b.finish(list[i].place, list[i].md, {2}, *operands[i].have);
  auto name = fmt::format("onednn:{} {} reorders={}", node.op->name, DnnlBuilder::impl_name(pd), b.reorders());
  return b.take(std::move(name));
}

}  // namespace

Choice dnnl_conv(const NodeView& node) { return make(node, Direction::kForward, 0, 1, 2); }
Choice dnnl_conv_grad_input(const NodeView& node) { return make(node, Direction::kGradInput, 2, 1, 0); }
Choice dnnl_conv_grad_weight(const NodeView& node) { return make(node, Direction::kGradWeight, 0, 2, 1); }

}  // namespace undertow::backend::cpu
