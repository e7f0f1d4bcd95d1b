// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "tests/data/common.h"

namespace undertow::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Mnist : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() /
           (std::string("undertow_idx_") + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
            std::to_string(getpid()));
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  static std::string header(int rank, std::uint32_t n) {
    std::string s;
    const auto word = [&](std::uint32_t v) {
      for (const int shift : {24, 16, 8, 0}) s += static_cast<char>(v >> shift & 0xff);
    };
    word(0x800u + static_cast<std::uint32_t>(rank));
    word(n);
    if (rank == 3) {
      word(28);
      word(28);
    }
    return s;
  }
  static std::string images(std::uint32_t n, int from = 0) {
    std::string s = header(3, n);
    for (std::uint32_t i = 0; i < n; ++i) s.append(784, static_cast<char>(from + static_cast<int>(i)));
    return s;
  }
  static std::string labels(std::uint32_t n) {
    std::string s = header(1, n);
    for (std::uint32_t i = 0; i < n; ++i) s += static_cast<char>(i % 10);
    return s;
  }
  void put(const std::string& name, const std::string& bytes) { std::ofstream(dir_ / name, std::ios::binary) << bytes; }
  void put_gzip(const std::string& name, const std::string& bytes) {
    gzFile f = gzopen((dir_ / name).c_str(), "wb");
    gzwrite(f, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(f);
  }
  std::string error(const std::string& usage = "train") {
    try {
      MnistDataset(dir_.string(), usage);
    } catch (const Error& e) {
      return std::string(e.kind()) + ": " + e.what();
    }
    return "no error";
  }
  fs::path dir_;
};

TEST_F(Mnist, ReadsPlainAndGzipByContent) {
  put("train-images-idx3-ubyte", images(12));
  put_gzip("train-labels-idx1-ubyte", labels(12));  // still compressed, though its name says otherwise
  put_gzip("t10k-images-idx3-ubyte.gz", images(5, 100));
  put("t10k-labels.idx1-ubyte", labels(5));
  const auto d = MnistDataset(dir_.string(), "train", {.shuffle = false});
  EXPECT_EQ(d.get_dataset_size(), 12);
  const auto specs = d.batch(4).describe();
  EXPECT_EQ(specs[0], (ColumnSpec{"image", DType::kUInt8, {4, 28, 28, 1}}));
  EXPECT_EQ(specs[1], (ColumnSpec{"label", DType::kUInt32, {4}}));
  int i = 0;
  for (const Row& r : d) {
    EXPECT_EQ(r[0].data_as<std::uint8_t>()[783], i);
    EXPECT_EQ(r[1].item_as_int(), i % 10);
    ++i;
  }
  EXPECT_EQ(FashionMnistDataset(dir_.string(), "test").get_dataset_size(), 5);
  const auto both = MnistDataset(dir_.string(), "all", {.shuffle = false});
  EXPECT_EQ(both.get_dataset_size(), 17);
  EXPECT_EQ((*both.begin())[0].data_as<std::uint8_t>()[0], 100);  // those of the test set come first
  EXPECT_EQ((*both.skip(5).begin())[0].data_as<std::uint8_t>()[783], 0);
  fs::remove(dir_ / "t10k-images-idx3-ubyte.gz");
  EXPECT_THAT(message<FileError>([&] { MnistDataset(dir_.string()); }), HasSubstr("t10k-images"));  // half a set
  fs::remove(dir_ / "t10k-labels.idx1-ubyte");
  EXPECT_EQ(MnistDataset(dir_.string()).get_dataset_size(), 12);  // what there is
}

TEST_F(Mnist, SaysWhatIsMissing) {  // C07
  EXPECT_THAT(error(), AllOf(HasSubstr("FileError"), HasSubstr(dir_.string()), HasSubstr("train-images-idx3-ubyte"),
                             HasSubstr("train-images-idx3-ubyte.gz")));
  put("train-images-idx3-ubyte", images(2));
  EXPECT_THAT(error(), AllOf(HasSubstr("FileError"), HasSubstr("train-labels-idx1-ubyte")));
  EXPECT_THAT(message<FileError>([] { MnistDataset("/nonexistent/mnist"); }), HasSubstr("/nonexistent/mnist"));
  EXPECT_THAT(message<ValueError>([&] { MnistDataset(dir_.string(), "valid"); }), HasSubstr("'valid'"));
}

TEST_F(Mnist, RefusesDamagedFiles) {  // C07
  put("train-labels-idx1-ubyte", labels(10));
  put("train-images-idx3-ubyte", images(10).substr(0, 16 + 7840 - 100));
  EXPECT_THAT(error(), AllOf(HasSubstr("FormatError"), HasSubstr("train-images"), HasSubstr("cut short")));
  put("train-images-idx3-ubyte", images(10) + "x");
  EXPECT_THAT(error(), AllOf(HasSubstr("FormatError"), HasSubstr("too long")));
  put("train-images-idx3-ubyte", labels(10));
  EXPECT_THAT(error(), AllOf(HasSubstr("FormatError"), HasSubstr("0x00000801")));
  put("train-images-idx3-ubyte", "");
  EXPECT_THAT(error(), AllOf(HasSubstr("FormatError"), HasSubstr("0 bytes")));
  put("train-images-idx3-ubyte", images(9));
  EXPECT_THAT(error(), AllOf(HasSubstr("9 images"), HasSubstr("10 labels")));
  auto other = images(10);
  other[11] = 32;
  put("train-images-idx3-ubyte", other);
  EXPECT_THAT(error(), HasSubstr("32 x 28"));
  put("train-images-idx3-ubyte", images(10));
  auto label = labels(10);
  label.back() = 77;
  put("train-labels-idx1-ubyte", label);
  EXPECT_THAT(error(), AllOf(HasSubstr("label 77"), HasSubstr("row 9")));
}

TEST_F(Mnist, RefusesCutGzip) {
  put_gzip("train-labels-idx1-ubyte.gz", labels(10));
  put_gzip("train-images-idx3-ubyte.gz", images(10));
  const auto path = dir_ / "train-images-idx3-ubyte.gz";
  fs::resize_file(path, fs::file_size(path) - 12);
  EXPECT_THAT(error(), AllOf(HasSubstr("FormatError"), HasSubstr("train-images-idx3-ubyte.gz")));
}

}  // namespace
}  // namespace undertow::data
