// SPDX-License-Identifier: Apache-2.0
// What a C++ program calls of ops beyond the elementwise: the values themselves are the Python tables' business.
#include <gtest/gtest.h>

#include "undertow/undertow.h"

namespace undertow {
namespace {

std::vector<double> values(const Tensor& t) {
  const Tensor wide = t.to(DType::kFloat64);
  const auto* p = static_cast<const double*>(wide.data());
  return {p, p + wide.size()};
}
using V = std::vector<double>;

const Tensor& x() {
  static const Tensor t(std::vector<float>{3, 1, 2, 4, 0, 5}, Shape{2, 3});
  return t;
}

ops::Index integer(std::int64_t i) { return {.kind = ops::Index::kInteger, .value = i}; }
ops::Index positions(const Tensor& t) { return {.kind = ops::Index::kTensor, .tensor = t}; }
ops::Index every(std::int64_t step) { return {.kind = ops::Index::kSlice, .step = step}; }

TEST(Ops, Order) {
  const auto [sorted, at] = ops::sort(x());
  EXPECT_EQ(values(sorted), (V{1, 2, 3, 0, 4, 5}));
  EXPECT_EQ(values(at), (V{1, 2, 0, 1, 0, 2}));
  EXPECT_EQ(values(ops::topk(x(), 1, 0).first), (V{4, 1, 5}));
  EXPECT_EQ(values(ops::cumsum(x(), 1, true)), (V{0, 3, 4, 0, 4, 4}));
  EXPECT_EQ(values(ops::median(x(), 1).first), (V{2, 4}));
  EXPECT_THROW(ops::topk(x(), 4), ValueError);
}

TEST(Ops, Indexing) {
  const Tensor rows({std::int64_t{1}, std::int64_t{0}}), columns({std::int32_t{2}, std::int32_t{-1}});
  EXPECT_EQ(values(ops::index(x(), {positions(rows), positions(columns)})), (V{5, 2}));
  EXPECT_EQ(values(ops::index(x(), {{.kind = ops::Index::kEllipsis}, every(-2)})), (V{2, 3, 5, 4}));
  EXPECT_EQ(values(ops::set_index(x(), {integer(0), every(2)}, 7)), (V{7, 1, 7, 4, 0, 5}));
  EXPECT_EQ(values(ops::set_index(x(), {positions(ops::greater(x(), 2))}, 0.5)), (V{0.5, 1, 2, 0.5, 0, 0.5}));
  EXPECT_EQ(values(ops::scatter(x(), rows, ops::ones_like(x()), 0, "add")), (V{4, 2, 3, 5, 1, 6}));
  EXPECT_THROW(ops::index(x(), {positions(Tensor({std::int64_t{2}}))}), IndexError);
  EXPECT_THROW(ops::index(x(), {integer(2)}), IndexError);
  EXPECT_THROW(ops::set_index(x(), {integer(0)}, Tensor({1.f, 2.f})), ShapeError);
}

TEST(Ops, WritingInPlace) {
  const Tensor t = x().clone();
  ops::write_index(t, {{.kind = ops::Index::kEllipsis}, every(-2)}, Tensor({8.f, 9.f}));
  EXPECT_EQ(values(t), (V{9, 1, 8, 9, 0, 8}));
  ops::write_index(t, {positions(Tensor({std::int64_t{1}}))}, -1);
  EXPECT_EQ(values(t), (V{9, 1, 8, -1, -1, -1}));
  EXPECT_THROW(ops::write_index(t, {integer(0)}, t), ShapeError);
}

TEST(Ops, Arrangement) {
  EXPECT_EQ(ops::tile(x(), {2, 1}).shape(), (Shape{4, 3}));
  EXPECT_EQ(values(ops::roll(x(), {1}, {1})), (V{2, 3, 1, 5, 4, 0}));
  EXPECT_EQ(values(ops::diagonal(x(), 1)), (V{1, 5}));
  EXPECT_EQ(values(ops::tril(x())), (V{3, 0, 0, 4, 0, 0}));
  EXPECT_EQ(ops::split_size(x(), 2, 1).at(1).shape(), (Shape{2, 1}));
  EXPECT_EQ(values(ops::linspace(0, 1, 3)), (V{0, 0.5, 1}));
}

TEST(Ops, Products) {
  EXPECT_EQ(values(ops::einsum("ij,kj->ik", {x(), x()})), (V{14, 22, 22, 41}));
  EXPECT_EQ(values(ops::tensordot(x(), x(), {0, 1}, {0, 1})), (V{55}));
  EXPECT_EQ(values(ops::vector_norm(x(), 1, {1})), (V{6, 9}));
  EXPECT_THROW(ops::einsum("ij,jk", {x(), x()}), ShapeError);
}

TEST(Ops, DrawsFollowTheSeed) {
  const auto draw = [](std::uint64_t seed) {
    set_seed(seed);
    return values(ops::standard_normal(Shape{16}));
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
  const V p = values(ops::random_permutation(10));
  EXPECT_EQ(values(ops::sort(Tensor(p)).first), (V{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace undertow
