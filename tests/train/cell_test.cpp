// SPDX-License-Identifier: Apache-2.0
#include "helpers.h"

namespace undertow {
namespace {

using nn::Value;

struct Block : nn::Cell {
  nn::Dense fc = child("fc", nn::Dense(3, 3));
  nn::BatchNorm1d bn = child("bn", nn::BatchNorm1d(3));
  Tensor construct(const Tensor& x) override { return bn(fc(x)); }
  std::string cls_name() const override { return "Block"; }
};
struct Net : nn::Cell {
  nn::SequentialCell body = child("body", nn::SequentialCell(nn::make<Block>(), nn::ReLU(), nn::Dense(3, 2)));
  Parameter scale = param("scale", Parameter(Tensor({1.f})));
  Tensor construct(const Tensor& x) override { return body(x) * scale; }
  std::string cls_name() const override { return "Net"; }
};

std::vector<std::string> names_of(const std::vector<Parameter>& params) {
  std::vector<std::string> out;
  for (const Parameter& p : params) out.push_back(p.name());
  return out;
}

TEST(Cell, NamesFollowAttributePaths) {
  const auto net = nn::make<Net>();
  EXPECT_EQ(names_of(net.get_parameters()),
            (std::vector<std::string>{"scale", "body.0.fc.weight", "body.0.fc.bias", "body.0.bn.moving_mean",
                                      "body.0.bn.moving_variance", "body.0.bn.gamma", "body.0.bn.beta", "body.2.weight",
                                      "body.2.bias"}));
  EXPECT_EQ(names_of(net->untrainable_params()),
            (std::vector<std::string>{"body.0.bn.moving_mean", "body.0.bn.moving_variance"}));
  for (const auto& [path, p] : net->parameters_and_names()) EXPECT_EQ(path, p.name());

  std::vector<std::string> cells;
  for (const auto& [path, c] : net->cells_and_names()) cells.push_back(path + ":" + c->cls_name());
  EXPECT_EQ(cells, (std::vector<std::string>{":Net", "body:SequentialCell", "body.0:Block", "body.0.fc:Dense",
                                             "body.0.bn:BatchNorm1d", "body.1:ReLU", "body.2:Dense"}));
}

TEST(Cell, ExplicitNamesStayAtTheTop) {
  const nn::BatchNorm2d bn(2);
  EXPECT_EQ(bn.moving_mean().name(), "mean");
  EXPECT_EQ(bn.moving_variance().name(), "variance");
  EXPECT_EQ(names_of(nn::Dense(1, 1).get_parameters()), (std::vector<std::string>{"weight", "bias"}));
}

TEST(Cell, LateChildrenGetTheFullPath) {
  const auto net = nn::make<Net>();
  net->body.append(nn::Dense(2, 1, {.has_bias = false}));
  EXPECT_EQ(net.get_parameters().back().name(), "body.3.weight");
}

TEST(Cell, SharedParametersAreListedOnce) {
  const nn::Dense a(2, 2);
  const nn::SequentialCell seq(a, a);
  EXPECT_EQ(seq.get_parameters().size(), 2u);
  EXPECT_EQ(seq->cells_and_names().size(), 2u);
}

TEST(Cell, ReplacingAndRemoving) {
  const auto net = nn::make<Net>();
  const std::uint64_t before = net->version();
  net->insert_param("scale", Parameter(Tensor({2.f})));
  EXPECT_EQ(net->own_params().size(), 1u);
  EXPECT_EQ(net->get_param("scale").item<float>(), 2.f);
  EXPECT_GT(net->version(), before);
  net->insert_child("scale", nn::ReLU());  // an attribute is one thing at a time
  EXPECT_TRUE(net->own_params().empty());
  EXPECT_TRUE(net->remove("scale"));
  EXPECT_FALSE(net->remove("scale"));
}

TEST(Cell, VersionSeesChangesBelow) {
  const auto net = nn::make<Net>();
  const std::uint64_t before = net->version();
  net->body[0]->set_train(true);
  const std::uint64_t after = net->version();
  EXPECT_GT(after, before);
  net->body[0]->set_train(true);  // no change
  EXPECT_EQ(net->version(), after);
  EXPECT_FALSE(net->training());
  net.set_train();
  EXPECT_TRUE(net->training());
}

TEST(Cell, ValuesSayWhatTheyAre) {
  EXPECT_EQ(testing::message_of<TypeError>([] { Value(2.5).tensor(); }), "expected a Tensor but got a float");
  EXPECT_EQ(testing::message_of<TypeError>([] { Value().list(); }), "expected a tuple or a list but got None");
  const Value tree(Value::List{Tensor({1.f}), Value(Value::Dict{{"a", Tensor({2.f})}}), 3});
  EXPECT_EQ(tree.tensors().size(), 2u);
}

TEST(Cell, WrongNumberOfInputs) {
  testing::expect_error<TypeError>([] { nn::ReLU()(Tensor({1.f}), Tensor({1.f})); },
                                   {"ReLU", "takes 1 input, but got 2"});
  testing::expect_error<TypeError>([] { nn::MSELoss()(Tensor({1.f})); }, {"MSELoss", "takes 2 inputs, but got 1"});
}

TEST(Cell, IndexOfContainers) {
  const auto seq = nn::SequentialCell(nn::ReLU(), nn::Flatten());
  EXPECT_EQ(seq[-1]->cls_name(), "Flatten");
  testing::expect_error<IndexError>([&] { seq[2]; }, {"SequentialCell", "2"});
  nn::CellList list({nn::ReLU(), nn::Dense(2, 2)});
  EXPECT_EQ(names_of(list.get_parameters()), (std::vector<std::string>{"1.weight", "1.bias"}));
}

}  // namespace
}  // namespace undertow
