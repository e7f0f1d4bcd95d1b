// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/precision.h"
#include "undertow/ops/reference/reference.h"
#include "undertow/ops/register.h"

namespace undertow::ops {

using ir::Attrs;
using ir::GradContext;
using Grads = std::vector<Tensor>;
using Types = std::span<const ir::TensorType>;

namespace {

std::vector<ir::TensorType> infer_matmul(Types in, const Attrs& attrs) {
  const Shape &a = in[0].shape, &b = in[1].shape;
  UNDERTOW_CHECK(a.rank() >= 2 && b.rank() >= 2, ShapeError, "both sides need at least 2 dimensions, got {} and {}",
                 a.str(), b.str());
  UNDERTOW_CHECK(in[0].dtype == in[1].dtype, TypeError, "dtypes {} and {} differ", name_of(in[0].dtype),
                 name_of(in[1].dtype));
  const auto rows = [](const Shape& s, bool t) { return s[s.rank() - (t ? 1 : 2)]; };
  const auto columns = [](const Shape& s, bool t) { return s[s.rank() - (t ? 2 : 1)]; };
  const bool ta = attrs.flag("transpose_a"), tb = attrs.flag("transpose_b");
  UNDERTOW_CHECK(columns(a, ta) == rows(b, tb), ShapeError, "inner dimensions differ: {} of {} against {} of {}{}",
                 columns(a, ta), a.str(), rows(b, tb), b.str(), tb ? " (transposed)" : "");
  const auto batch = [](const Shape& s) { return Shape(std::span(s.begin(), s.size() - 2)); };
  Shape out = broadcast(batch(a), batch(b));
  out.push_back(rows(a, ta));
  out.push_back(columns(b, tb));
  return {{in[0].dtype, out}};
}

/// For y = op(a) op(b): da and db are products of dy with the other side, written without a transpose in memory.
Grads matmul_grad(const GradContext& c) {
  const bool ta = c.attrs.flag("transpose_a"), tb = c.attrs.flag("transpose_b");
  const Tensor &a = c.inputs[0], &b = c.inputs[1], &g = c.grads[0];
  Grads out(2);
  if (c.needs[0]) out[0] = ta ? matmul(b, g, tb, true) : matmul(g, b, false, !tb);
  if (c.needs[1]) out[1] = tb ? matmul(g, a, true, ta) : matmul(a, g, !ta, false);
  return out;
}

}  // namespace

void register_matmul(ir::OpSet& set) {
  ir::OpDef def;
  def.name = "matmul";
  def.num_inputs = 2;
  def.inputs = {"a", "b"};
  def.doc = "matrix product of the last two dimensions; the others broadcast";
  def.defaults = {{"transpose_a", false}, {"transpose_b", false}};
  def.infer = infer_matmul;
  def.grad = matmul_grad;
  def.reference = reference::matmul;
  def.amp = ir::AmpClass::kLow;
  set.add(std::move(def));
}

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  const DType t = promote(a, b);
  Tensor x = cast(a, t), y = cast(b, t);
  const bool row = a.ndim() == 1,
             column = b.ndim() == 1;  // NumPy: a vector is a row on the left, a column on the right
  UNDERTOW_CHECK(a.ndim() > 0 && b.ndim() > 0, ShapeError, "matmul: a scalar has no matrix product; use mul");
  if (row) x = expand_dims(x, 0);
  if (column) y = expand_dims(y, 1);
  Tensor z = call("matmul", {x, y}, {{"transpose_a", transpose_a && !row}, {"transpose_b", transpose_b && !column}});
  if (column) z = squeeze(z, {-1});
  if (row) z = squeeze(z, {column ? -1 : -2});
  return z;
}

}  // namespace undertow::ops
