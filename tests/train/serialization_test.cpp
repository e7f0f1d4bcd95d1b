// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/serialization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "undertow/train/layers.h"

namespace undertow {
namespace {

using ::testing::HasSubstr;

TEST(Serialization, NetworksLoadAllOrNothing) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("undertow_net" + std::to_string(getpid()) + ".ckpt")).string();
  nn::Dense from(3, 2), to(3, 2), wide(4, 2);
  save_checkpoint(from, path);
  const NamedParameters loaded = load_checkpoint(path);
  const LoadResult result = load_param_into_net(to, loaded);
  EXPECT_TRUE(result.param_not_load.empty());
  EXPECT_TRUE(result.ckpt_not_load.empty());
  EXPECT_EQ(std::memcmp(from.weight().data(), to.weight().data(), from.weight().nbytes()), 0);

  const Tensor bias = wide.bias().clone();
  EXPECT_THAT(
      [&] { load_param_into_net(wide, loaded); },
      ::testing::ThrowsMessage<ShapeError>(AllOf(HasSubstr("'weight'"), HasSubstr("(2, 4)"), HasSubstr("(2, 3)"))));
  EXPECT_EQ(std::memcmp(bias.data(), wide.bias().data(), bias.nbytes()), 0);

  // Names behind a prefix are found unless strict.
  NamedParameters prefixed;
  for (const auto& [name, value] : loaded) prefixed.emplace_back("backbone." + name, value);
  EXPECT_TRUE(load_param_into_net(to, prefixed).param_not_load.empty());
  EXPECT_EQ(load_param_into_net(to, prefixed, true).param_not_load.size(), 2u);
  // Other names are taken in order where shapes and last parts agree for all that is left, and only then.
  NamedParameters other{{"x.weight", loaded[0].second}, {"y.bias", loaded[1].second}};
  EXPECT_TRUE(load_param_into_net(to, other).by_order);
  EXPECT_EQ(load_param_into_net(to, other, true).param_not_load.size(), 2u);
  other[1].first = "y.beta";
  EXPECT_FALSE(load_param_into_net(to, other).by_order);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace undertow
