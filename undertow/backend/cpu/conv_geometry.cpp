// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/cpu/conv_geometry.h"

#include "undertow/base/check.h"
#include "undertow/ops/channel_blocks.h"

namespace undertow::backend::cpu {
namespace {

void set_extents(ConvGeometry& g, const Shape& x, const Shape& y) {
  const int channel = g.nhwc ? 3 : 1, row = g.nhwc ? 1 : 2;
  g.n = x[0], g.c = x[channel], g.h = x[row], g.w = x[row + 1];
  g.o = y[channel], g.oh = y[row], g.ow = y[row + 1];
}

void set_window(ConvGeometry& g, const NodeView& node) {
  const auto &s = node.ints("strides"), &p = node.ints("pads");
  UNDERTOW_ASSERT(s.size() == 2 && p.size() == 4);
  g.sh = s[0], g.sw = s[1];
  g.top = p[0], g.bottom = p[1], g.left = p[2], g.right = p[3];
  g.nhwc = node.text("layout") == "NHWC";
  g.block = ops::channel_block(node.text("layout"));
}

}  // namespace

ConvGeometry conv_geometry(const NodeView& node, const Shape& x, const Shape& w, const Shape& y) {
  ConvGeometry g{};
  set_window(g, node);
  if (g.block) set_extents(g, ops::without_blocks(x), ops::without_blocks(y));
  else set_extents(g, x, y);
  g.kh = w[2], g.kw = w[3];
  const auto& d = node.ints("dilations");
  g.dh = d[0], g.dw = d[1];
  g.groups = node.integer("groups");
  return g;
}

ConvGeometry pool_geometry(const NodeView& node, const Shape& x, const Shape& y) {
  ConvGeometry g{};
  set_window(g, node);
  set_extents(g, x, y);
  const auto& k = node.ints("kernel");
  g.kh = k[0], g.kw = k[1];
  g.dh = g.dw = 1;
  if (node.op->defaults.find("dilations")) {  // maxima
    const auto& d = node.ints("dilations");
    g.dh = d[0], g.dw = d[1];
  }
  g.groups = g.c;
  return g;
}

}  // namespace undertow::backend::cpu
