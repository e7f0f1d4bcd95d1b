// SPDX-License-Identifier: Apache-2.0
#include "undertow/formats/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "undertow/formats/atomic_file.h"

namespace undertow::formats {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() /
           (std::string("undertow_ckpt_") + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
            std::to_string(getpid()));
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string path(const char* name = "a.ckpt") const { return (dir_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir_), fs::directory_iterator{}));
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static std::vector<CheckpointEntry> sample() {
    std::vector<CheckpointEntry> entries;
    for (int i = 0; i < kNumDTypes; ++i) {
      const auto dtype = static_cast<DType>(i);
      entries.push_back({"of." + std::string(name_of(dtype)), Tensor::full({2, 3}, 1, dtype), {}});
    }
    entries.push_back({"scalar", Tensor::scalar(2.5f), {}});
    entries.push_back({"empty", Tensor(DType::kFloat32, {0, 4}), {}});
    entries.push_back({"note", {}, "caf\u00e9 \u4e2d \U0001F600"});
    entries.push_back({"note.empty", {}, ""});
    return entries;
  }
  static void expect_equal(const std::vector<CheckpointEntry>& a, const std::vector<CheckpointEntry>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      SCOPED_TRACE(a[i].name);
      EXPECT_EQ(a[i].name, b[i].name);
      ASSERT_EQ(a[i].tensor.defined(), b[i].tensor.defined());
      if (!a[i].tensor.defined()) {
        EXPECT_EQ(a[i].text, b[i].text);
        continue;
      }
      ASSERT_EQ(a[i].tensor.shape(), b[i].tensor.shape());
      ASSERT_EQ(a[i].tensor.dtype(), b[i].tensor.dtype());
      EXPECT_EQ(std::memcmp(a[i].tensor.data(), b[i].tensor.data(), a[i].tensor.nbytes()), 0);
    }
  }

  fs::path dir_;
};

TEST_F(CheckpointTest, WhatIsWrittenIsReadBack) {
  for (const bool crc : {false, true}) {
    save_checkpoint(path(), sample(), crc);
    EXPECT_EQ(has_crc(path()), crc);
    expect_equal(load_checkpoint(path(), /*check_crc=*/true), sample());
    EXPECT_EQ(files(), 1u);
  }
}

TEST_F(CheckpointTest, FilesOfMindSporeAreWrittenBackByteForByte) {
  for (const char* name : {"sample_adam.ckpt", "sample_adam_crc.ckpt"}) {
    const std::string theirs = std::string(UNDERTOW_TEST_DATA) + "/" + name;
    const auto entries = load_checkpoint(theirs, true);
    EXPECT_GT(entries.size(), 12u);
    save_checkpoint(path(), entries, has_crc(theirs));
    EXPECT_EQ(read(path()), read(theirs)) << name;
  }
}

TEST_F(CheckpointTest, DamageIsAnErrorThatNamesThePlace) {
  save_checkpoint(path(), sample(), true);
  const std::string good = read(path());
  std::string flipped = good;
  flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 1);
  write(path(), flipped);
  EXPECT_THAT([&] { load_checkpoint(path(), true); },
              ::testing::ThrowsMessage<FormatError>(AllOf(HasSubstr(path()), HasSubstr("damaged"))));
  // Any length and any flipped bits: an error or other values, never a crash or memory beyond the file's size.
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string bad = good.substr(0, i % 3 ? good.size() : random() % good.size());
    for (int k = 0; k < 3 && !bad.empty(); ++k) bad[random() % bad.size()] = static_cast<char>(random());
    write(path("bad.ckpt"), bad);
    try {
      load_checkpoint(path("bad.ckpt"));
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), HasSubstr("bad.ckpt"));
    } catch (const ShapeError&) {
    }
  }
}

TEST_F(CheckpointTest, MissingEmptyAndForeignFiles) {
  EXPECT_THAT([&] { load_checkpoint(path("none.ckpt")); },
              ::testing::ThrowsMessage<FileError>(AllOf(HasSubstr("none.ckpt"), HasSubstr("No such file"))));
  EXPECT_THROW(load_checkpoint(dir_.string()), FileError);
  write(path(), "");
  EXPECT_THAT([&] { load_checkpoint(path()); }, ::testing::ThrowsMessage<FormatError>(HasSubstr("empty")));
  write(path(), "this is a text and no checkpoint");
  EXPECT_THAT([&] { load_checkpoint(path()); },
              ::testing::ThrowsMessage<FormatError>(AllOf(HasSubstr("offset 0"), HasSubstr("not a checkpoint"))));
}

TEST_F(CheckpointTest, AFailedSaveKeepsTheOldFile) {
  save_checkpoint(path(), sample());
  const std::string before = read(path());
  {
    AtomicFile file(path());
    file.write("half of it");
  }  // never committed
  EXPECT_EQ(read(path()), before);
  EXPECT_EQ(files(), 1u);
  EXPECT_THROW(save_checkpoint((dir_ / "no" / "a.ckpt").string(), sample()), FileError);
}

}  // namespace
}  // namespace undertow::formats
