// SPDX-License-Identifier: Apache-2.0
// Image operations from C++; the table of all of them against OpenCV and Pillow is tests/python/test_vision.py.
#include <cmath>

#include "tests/data/common.h"
#include "undertow/data/config.h"
#include "undertow/data/strings.h"
#include "undertow/data/transforms.h"
#include "undertow/data/vision/codec.h"

namespace undertow::data {
namespace {

using ::testing::HasSubstr;

Tensor waves(std::int64_t h, std::int64_t w) {
  Tensor x(DType::kUInt8, {h, w, 3});
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data_as<std::uint8_t>()[i] = static_cast<std::uint8_t>(
        127 + 120 * std::sin(0.07 * static_cast<double>(i / 3 % w) + static_cast<double>(i % 3)));
  return x;
}

Tensor run(const std::shared_ptr<MapOp>& op, const Tensor& x, std::int64_t sample = 0) {
  return (*op)(Row{x}, RowContext{.seed = 3, .sample = sample})[0];
}

std::vector<std::uint8_t> bytes(const Tensor& x) {
  return {x.data_as<std::uint8_t>(), x.data_as<std::uint8_t>() + x.size()};
}

TEST(Vision, DecodesWhatItEncodes) {
  const Tensor image = waves(37, 53);
  EXPECT_EQ(bytes(run(vision::Decode(), vision::encode_png(image))), bytes(image));
  const Tensor jpeg = run(vision::Decode(), vision::encode_jpeg(image, 95));
  EXPECT_EQ(jpeg.shape(), image.shape());
}

TEST(Vision, CropsWhileDecoding) {
  const Tensor file = vision::encode_jpeg(waves(97, 131));
  const auto both = vision::RandomCropDecodeResize({24, 32});
  const auto crop = vision::RandomResizedCrop({24, 32});
  const Tensor whole = run(vision::Decode(), file);
  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(bytes(run(both, file, i)), bytes(run(crop, whole, i))) << i;
}

TEST(Vision, DamagedFilesAreDataErrors) {
  const Tensor file = vision::encode_jpeg(waves(40, 40));
  for (const std::int64_t n : {0, 3, 50, 400}) {
    const Tensor cut(std::span(static_cast<const std::uint8_t*>(file.data()), static_cast<std::size_t>(n)));
    EXPECT_THROW(run(vision::Decode(), cut), DataError) << n;
  }
}

TEST(Vision, InAPipeline) {
  const Tensor stacked = Tensor::full({6, 10, 12, 3}, 200, DType::kUInt8);
  const Dataset d = NumpySlicesDataset({stacked}, {"image"}, {.shuffle = false})
                        .map(vision::Resize({5, 6}), {.input_columns = {"image"}})
                        .map(vision::Normalize({100}, {50}), {.input_columns = {"image"}})
                        .map(vision::HWC2CHW(), {.input_columns = {"image"}})
                        .batch(2);
  auto it = d.create_tuple_iterator(1);
  const auto row = it.next();
  ASSERT_TRUE(row);
  EXPECT_EQ((*row)[0].shape(), (Shape{2, 3, 5, 6}));
  for (std::int64_t i = 0; i < (*row)[0].size(); ++i) EXPECT_EQ((*row)[0].data_as<float>()[i], 2.f);
}

TEST(Vision, OnePassGivesTheSameBits) {
  std::vector<Tensor> files;
  for (const std::int64_t size : {33, 64, 97}) files.push_back(vision::encode_jpeg(waves(size, size + 20)));
  const auto run_all = [&](bool fuse) {
    config().fuse = fuse;
    std::vector<std::uint8_t> all;
    const auto op = transforms::Compose({vision::RandomCropDecodeResize({24, 32}), vision::RandomHorizontalFlip(),
                                         vision::Normalize({120, 110, 100}, {50, 60, 70}), vision::HWC2CHW()});
    for (std::int64_t i = 0; i < 30; ++i) {
      const Tensor y = run(op, files[static_cast<std::size_t>(i) % files.size()], i);
      EXPECT_EQ(y.shape(), (Shape{3, 24, 32}));
      const auto* p = static_cast<const std::uint8_t*>(y.data());
      all.insert(all.end(), p, p + y.nbytes());
    }
    return all;
  };
  const auto apart = run_all(false);
  EXPECT_EQ(run_all(true), apart);
}

TEST(Vision, RefusesWhatItCannotDo) {
  EXPECT_THROW(vision::Resize({0}), ValueError);
  EXPECT_THROW(vision::RandomHorizontalFlip(2), ValueError);
  EXPECT_THROW(run(vision::AdjustBrightness(2), Tensor::zeros({4, 4, 3})), DataError);
  EXPECT_THROW(run(vision::RandomCrop({9}), waves(8, 8)), DataError);
}

TEST(Transforms, TextsAreNoNumbers) {
  const Tensor text = text_of("ab");
  for (const auto& op : {transforms::TypeCast(DType::kInt32), transforms::Fill(3), transforms::Unique(),
                         transforms::Concatenate(0), std::shared_ptr<MapOp>(vision::Normalize({1}, {1}))})
    EXPECT_THAT(message<DataError>([&] { (*op)(Row{text}, {}); }),
                HasSubstr(op->name() + " takes numbers, got texts of shape ()"));
}

TEST(Transforms, SliceOfTexts) {
  const std::vector<std::string> texts{"a", "bcd", "ef"};
  const auto some = transforms::Slice({transforms::SliceOf{.places = std::vector<std::int64_t>{0, -1}}});
  EXPECT_EQ(texts_of(run(some, text_of(texts))), (std::vector<std::string>{"a", "ef"}));
  EXPECT_THAT(message<DataError>([&] { run(some, text_of("ab")); }), HasSubstr("1 slices of a column of shape ()"));
}

TEST(Transforms, OneHotAndUnique) {
  const Tensor labels(std::vector<std::int32_t>{2, 0});
  EXPECT_EQ(values(run(transforms::OneHot(3), labels)), (Ints{0, 0, 1, 1, 0, 0}));
  EXPECT_THROW(run(transforms::OneHot(2), labels), DataError);
  const Row u = (*transforms::Unique())(Row{Tensor(std::vector<std::int32_t>{5, 3, 5, 5})}, {});
  EXPECT_EQ(values(u[0]), (Ints{5, 3}));
  EXPECT_EQ(values(u[1]), (Ints{0, 1, 0, 0}));
  EXPECT_EQ(values(u[2]), (Ints{3, 1}));
}

}  // namespace
}  // namespace undertow::data
