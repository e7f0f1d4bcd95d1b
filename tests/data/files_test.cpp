// SPDX-License-Identifier: Apache-2.0
// Sources that read files, texts, and batches of rows that differ.
#include "undertow/data/files.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/data/common.h"
#include "undertow/data/strings.h"
#include "undertow/formats/mindrecord/writer.h"

namespace undertow::data {
namespace {

namespace fs = std::filesystem;
namespace mr = formats::mindrecord;
using ::testing::HasSubstr;

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("undertow_files_" + std::to_string(getpid()));
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string path(const std::string& name) const { return (dir_ / name).string(); }
  fs::path dir_;
};

TEST_F(FilesTest, MindRecordRowsInEveryOrder) {
  mr::Schema schema;
  schema.fields = {{"label", mr::FieldType::kInt32, {}}, {"name", mr::FieldType::kString, {}}};
  std::vector<mr::Record> rows;
  for (std::int64_t i = 0; i < 12; ++i) rows.push_back({i, std::string(static_cast<std::size_t>(i % 3), 'x')});
  mr::Writer writer(path("a"), 3);
  writer.set_schema(schema);
  writer.write(rows);
  writer.commit();
  MindOptions o;
  o.shuffle = false;
  const Dataset plain = MindDataset({path("a0")}, o);
  EXPECT_EQ(all(plain), range(12));
  EXPECT_EQ(texts_of((*plain.create_tuple_iterator(1).next())[1]), std::vector<std::string>{""});
  const Row batch = *plain.batch(12).create_tuple_iterator(1).next();
  EXPECT_EQ(texts_of(batch[1])[5], "xx");
  EXPECT_EQ(text_shape(batch[1]), Shape{12});
  o.shuffle = true;
  o.mode = ShuffleMode::kFiles;
  const auto files = epochs(MindDataset({path("a0")}, o), 8);
  for (const Ints& e : files) EXPECT_EQ(e[3], e[0] + 3);
  EXPECT_NE(files, std::vector<Ints>(8, files[0]));
  MindOptions pk;
  pk.sampler = PKSampler(1, 3);
  EXPECT_EQ(all(MindDataset({path("a0")}, pk)), (Ints{0, 1, 2}));
  EXPECT_THAT(message<TypeError>([] { numbers(3, {.sampler = PKSampler(1)}); }), HasSubstr("label"));
}

TEST_F(FilesTest, CsvAndTextFiles) {
  std::ofstream(path("a.csv")) << "n,t\n1,x\n,\"a\n,b\"\n";
  CsvOptions o;
  o.shuffle = false;
  o.defaults = {std::int32_t{7}, std::string("-")};
  const Dataset d = CSVDataset({path("a.csv")}, o);
  EXPECT_EQ(all(d), (Ints{1, 7}));
  EXPECT_EQ(texts_of((*d.skip(1).create_tuple_iterator(1).next())[1])[0], "a\n,b");
  std::ofstream(path("a.txt")) << "caf\u00e9\n\n\U0001F600";
  const Row row = *TextFileDataset({path("a.txt")}, {.shuffle = false}).batch(2).create_tuple_iterator(1).next();
  EXPECT_EQ(texts_of(row[0]), (std::vector<std::string>{"caf\u00e9", "\U0001F600"}));
}

TEST(Texts, WhatIsNoUtf8IsReplaced) {
  EXPECT_EQ(texts_of(text_of(std::string_view("a\xff\xc0\x80z")))[0].substr(0, 1), "a");
  EXPECT_EQ(texts_of(text_of(std::string_view("\xed\xa0\x80")))[0], "\xEF\xBF\xBD");
  EXPECT_EQ(texts_of(text_of(std::string_view("\xe4\xb8")))[0], "\xEF\xBF\xBD");
  EXPECT_EQ(text_of(std::string_view("")).shape(), (Shape{1}));
  EXPECT_FALSE(is_text(Tensor({std::uint32_t{1}})));
}

Dataset ragged(std::int64_t n) {
  return GeneratorDataset([](std::int64_t i) { return Row{Tensor::full({i % 4 + 1}, static_cast<double>(i))}; }, n,
                          {"x"}, {.shuffle = false});
}

TEST(Padding, ToTheLargestOrToAShape) {
  const Row row = *ragged(3).padded_batch(3).create_tuple_iterator(1).next();
  EXPECT_EQ(row[0].shape(), (Shape{3, 3}));
  EXPECT_EQ(values(row[0]), (Ints{0, 0, 0, 1, 1, 0, 2, 2, 2}));
  const PadInfo wide{{"x", {std::vector<std::int64_t>{4}, -1, ""}}};
  EXPECT_EQ(values((*ragged(1).padded_batch(2, wide).create_tuple_iterator(1).next())[0]), (Ints{0, -1, -1, -1}));
  const PadInfo narrow{{"x", {std::vector<std::int64_t>{2}, 0, ""}}};
  EXPECT_THAT(message<DataError>([&] { all(ragged(3).padded_batch(3, narrow)); }), HasSubstr("'x'"));
}

TEST(Buckets, RowsOfOneLengthTogether) {
  const Dataset d = ragged(8).bucket_batch_by_length({"x"}, {.boundaries = {3}, .batch_sizes = {4, 3}});
  std::vector<Shape> shapes;
  for (const Row& r : d) shapes.push_back(r[0].shape());
  EXPECT_EQ(shapes, (std::vector<Shape>{{4, 2}, {3, 4}, {1, 4}}));
  EXPECT_EQ(d.get_dataset_size(), 3);
}

TEST(Cache, RowsAreMadeOnce) {
  auto calls = std::make_shared<std::atomic<int>>(0);
  const Dataset d = numbers(5, {.shuffle = true}).map([calls](const Tensor& t) {
    ++*calls;
    return t;
  });
  const auto e = epochs(d.cache(), 3);
  EXPECT_LE(calls->load(), 10);  // two workers may make a row at once, for different epochs
  for (const Ints& one : e) EXPECT_EQ(sorted(one), range(5));
  EXPECT_NE(e, std::vector<Ints>(3, e[0]));
}

}  // namespace
}  // namespace undertow::data
