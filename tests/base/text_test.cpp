// SPDX-License-Identifier: Apache-2.0
// Values as text: strings that NumPy 2 made with str().
#include "undertow/tensor/text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace undertow {
namespace {

TEST(Text, Numbers) {
  EXPECT_EQ(text_of(Tensor::scalar(0.5f)), "0.5");
  EXPECT_EQ(text_of(Tensor::scalar(0.1f)), "0.1");
  EXPECT_EQ(text_of(Tensor::scalar(3.0)), "3.0");
  EXPECT_EQ(text_of(Tensor::scalar(1e20f)), "1e+20");
  EXPECT_EQ(text_of(Tensor::scalar(1.5e-5f)), "1.5e-05");
  EXPECT_EQ(text_of(Tensor::scalar(std::int64_t{-7})), "-7");
  EXPECT_EQ(text_of(Tensor::scalar(true)), "True");
  EXPECT_EQ(text_of(Tensor::scalar(NAN)), "nan");
}

TEST(Text, Arrays) {
  EXPECT_EQ(text_of(Tensor({1.f, 2.f, 3.f})), R"([1. 2. 3.])");
  EXPECT_EQ(text_of(Tensor({0.1f, -22.5f, 3.f})), R"([  0.1 -22.5   3. ])");
  EXPECT_EQ(text_of(Tensor({1e-9f, 1.f, NAN, -INFINITY})), R"([1.e-09 1.e+00    nan   -inf])");
  EXPECT_EQ(text_of(Tensor({1.f, NAN, INFINITY})), R"([ 1. nan inf])");
  EXPECT_EQ(text_of(Tensor({NAN, -INFINITY})), R"([ nan -inf])");
  EXPECT_EQ(text_of(Tensor({1e8f, 1.f})), R"([1.e+08 1.e+00])");
  EXPECT_EQ(text_of(Tensor({1234.567f, 1.f})), R"([1.234567e+03 1.000000e+00])");
  EXPECT_EQ(text_of(Tensor({1.0 / 3, 2.0 / 3})), R"([0.33333333 0.66666667])");
  EXPECT_EQ(text_of(Tensor({1.23456789e-7, 5.0})), R"([1.23456789e-07 5.00000000e+00])");
  EXPECT_EQ(text_of(Tensor({1e-100, 1e100})), R"([1.e-100 1.e+100])");
  EXPECT_EQ(text_of(Tensor({0.f, -0.f})), R"([ 0. -0.])");
  EXPECT_EQ(text_of(Tensor({true, false})), R"([ True False])");
  EXPECT_EQ(text_of(Tensor({std::int32_t{1}, std::int32_t{-200}, std::int32_t{30}})), R"([   1 -200   30])");
  EXPECT_EQ(text_of(Tensor({std::uint8_t{1}, std::uint8_t{200}})), R"([  1 200])");
  EXPECT_EQ(text_of(Tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3})), R"([[1. 2. 3.]
 [4. 5. 6.]])");
  EXPECT_EQ(text_of(Tensor(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2})), R"([[[1. 2.]
  [3. 4.]]

 [[5. 6.]
  [7. 8.]]])");
  EXPECT_EQ(text_of(Tensor(std::vector<float>{}, {0, 3})), R"([])");
  EXPECT_EQ(text_of(Tensor({float16(0.1f), float16(2.5f)})), R"([0.1 2.5])");
  std::vector<double> many(2000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i);
  EXPECT_EQ(text_of(Tensor(many)), R"([0.000e+00 1.000e+00 2.000e+00 ... 1.997e+03 1.998e+03 1.999e+03])");
  std::vector<float> wide(40);
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<float>(static_cast<double>(i) * 0.37);
  EXPECT_EQ(text_of(Tensor(wide)), R"([ 0.    0.37  0.74  1.11  1.48  1.85  2.22  2.59  2.96  3.33  3.7   4.07
  4.44  4.81  5.18  5.55  5.92  6.29  6.66  7.03  7.4   7.77  8.14  8.51
  8.88  9.25  9.62  9.99 10.36 10.73 11.1  11.47 11.84 12.21 12.58 12.95
 13.32 13.69 14.06 14.43])");
  std::vector<std::int64_t> table(1500);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int64_t>(i);
  EXPECT_EQ(text_of(Tensor(table, {30, 50})), R"([[   0    1    2 ...   47   48   49]
 [  50   51   52 ...   97   98   99]
 [ 100  101  102 ...  147  148  149]
 ...
 [1350 1351 1352 ... 1397 1398 1399]
 [1400 1401 1402 ... 1447 1448 1449]
 [1450 1451 1452 ... 1497 1498 1499]])");
}

}  // namespace
}  // namespace undertow
