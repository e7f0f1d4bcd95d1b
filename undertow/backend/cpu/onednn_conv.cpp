// SPDX-License-Identifier: Apache-2.0
// Convolution and its two gradients by oneDNN. x and y are dense NCHW or NHWC (NCDHW in three dimensions), the weights
// dense OIHW.
//
// Layout rule (measured): activations are offered as "any" and reordered inside the kernel, because the library's
// kernels for plain NCHW go through im2col, and those for NHWC are slower by a third without AVX-512. Channels-last
// memory is used as it is where AVX-512 takes it at full speed, and both plain layouts are for 1x1 convolutions, which
// are a matrix product there (6.1 ms against 8.0 ms for 64 -> 256 channels at 56x56, batch 8, AVX2). Weights are
// offered as "any".
#include "undertow/backend/cpu/compute_lock.h"
#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/onednn_common.h"
#include "undertow/base/check.h"

namespace undertow::backend::cpu {
namespace {

struct Setup {
  dnnl_memory_desc_t x, w, y;              // as the node has them
  dnnl_memory_desc_t x_any, w_any, y_any;  // as offered
  dnnl_dims_t strides, dilations, low, high;
};

using Dims = std::vector<std::int64_t>;

/// From the shapes of x, w and y.
Setup setup(const NodeView& node, const Shape& x_shape, const Shape& w_shape, const Shape& y_shape) {
  Setup s{};
  const DType dtype = node.in[0].dtype;
  const int spatial = x_shape.rank() - 2;
  const bool nhwc = node.text("layout") == "NHWC";
  const std::int64_t groups = node.integer("groups");
  const auto &strides = node.ints("strides"), &pads = node.ints("pads"), &dilations = node.ints("dilations");
  const auto channels_first = [&](const Shape& t) {
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
  const auto offered = pointwise || (nhwc && dnnl_has_avx512()) ? tag : dnnl_format_tag_any;
  const Dims x = channels_first(x_shape), y = channels_first(y_shape);
  s.x = dnnl_plain(x, dtype, tag);
  s.y = dnnl_plain(y, dtype, tag);
  s.x_any = dnnl_plain(x, dtype, offered);
  s.y_any = dnnl_plain(y, dtype, offered);
  s.w = dnnl_plain(w, dtype, weights);
  s.w_any = dnnl_plain(w, dtype, dnnl_format_tag_any);
  return s;
}

DnnlPrimitiveDesc describe_forward(const Setup& s) {
  dnnl_convolution_desc_t d;
  dnnl_check(
      dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct, &s.x_any, &s.w_any,
                                                 nullptr, &s.y_any, s.strides, s.dilations, s.low, s.high),
      "describe a convolution");
  return DnnlBuilder::describe(&d);
}

std::string named(const NodeView& node, const DnnlPrimitiveDesc& pd, const DnnlBuilder& b) {
  return fmt::format("onednn:{} {} reorders={}", node.op->name, DnnlBuilder::impl_name(pd), b.reorders());
}

}  // namespace

Choice dnnl_conv(const NodeView& node) {
  const DType dtype = node.in[0].dtype;
  if (!dnnl_native(dtype)) return Choice::decline(fmt::format("no native {}", name_of(dtype)));
  const ComputeLock lock;
  const Setup s = setup(node, node.in[0].shape, node.in[1].shape, node.out[0].shape);
  const auto pd = describe_forward(s);
  if (!pd) return Choice::decline("oneDNN has no fast implementation");
  DnnlBuilder b(node);
  const auto x = b.query(pd, dnnl_query_src_md), w = b.query(pd, dnnl_query_weights_md),
             y = b.query(pd, dnnl_query_dst_md);
  const DnnlPlace px = b.input({0}, s.x, x), pw = b.input({1}, s.w, w), py = b.output({2}, s.y, y);
  b.add(pd, {{DNNL_ARG_SRC, x, px}, {DNNL_ARG_WEIGHTS, w, pw}, {DNNL_ARG_DST, y, py}});
  b.finish(py, y, {2}, s.y);
  auto name = named(node, pd, b);
  return b.take(std::move(name));
}

Choice dnnl_conv_grad_input(const NodeView& node) {
  const DType dtype = node.in[0].dtype;
  if (!dnnl_native(dtype)) return Choice::decline(fmt::format("no native {}", name_of(dtype)));
  const ComputeLock lock;
  const Setup s = setup(node, node.out[0].shape, node.in[1].shape, node.in[0].shape);
  const auto forward = describe_forward(s);
  dnnl_convolution_desc_t d;
  dnnl_check(dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &s.x_any, &s.w_any, &s.y_any,
                                                              s.strides, s.dilations, s.low, s.high),
             "describe a convolution");
  const auto pd = forward ? DnnlBuilder::describe(&d, forward.get()) : nullptr;
  if (!pd) return Choice::decline("oneDNN has no fast implementation");
  DnnlBuilder b(node);
  const auto x = b.query(pd, dnnl_query_diff_src_md), w = b.query(pd, dnnl_query_weights_md),
             y = b.query(pd, dnnl_query_diff_dst_md);
  const DnnlPlace py = b.input({0}, s.y, y), pw = b.input({1}, s.w, w), px = b.output({2}, s.x, x);
  b.add(pd, {{DNNL_ARG_DIFF_DST, y, py}, {DNNL_ARG_WEIGHTS, w, pw}, {DNNL_ARG_DIFF_SRC, x, px}});
  b.finish(px, x, {2}, s.x);
  auto name = named(node, pd, b);
  return b.take(std::move(name));
}

Choice dnnl_conv_grad_weight(const NodeView& node) {
  const DType dtype = node.in[0].dtype;
  if (!dnnl_native(dtype)) return Choice::decline(fmt::format("no native {}", name_of(dtype)));
  const ComputeLock lock;
  const Setup s = setup(node, node.in[0].shape, node.out[0].shape, node.in[1].shape);
  const auto forward = describe_forward(s);
  dnnl_convolution_desc_t d;
  dnnl_check(
      dnnl_dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, &s.x_any, &s.w_any, nullptr,
                                                          &s.y_any, s.strides, s.dilations, s.low, s.high),
      "describe a convolution");
  const auto pd = forward ? DnnlBuilder::describe(&d, forward.get()) : nullptr;
  if (!pd) return Choice::decline("oneDNN has no fast implementation");
  DnnlBuilder b(node);
  const auto x = b.query(pd, dnnl_query_src_md), w = b.query(pd, dnnl_query_diff_weights_md),
             y = b.query(pd, dnnl_query_diff_dst_md);
  const DnnlPlace px = b.input({0}, s.x, x), py = b.input({1}, s.y, y), pw = b.output({2}, s.w, w);
  b.add(pd, {{DNNL_ARG_SRC, x, px}, {DNNL_ARG_DIFF_DST, y, py}, {DNNL_ARG_DIFF_WEIGHTS, w, pw}});
  b.finish(pw, w, {2}, s.w);
  auto name = named(node, pd, b);
  return b.take(std::move(name));
}

}  // namespace undertow::backend::cpu
