// SPDX-License-Identifier: Apache-2.0
// data/idx.cpp: MNIST and Fashion-MNIST from IDX files.
//
// IDX: two zero bytes, a type (8: uint8), the number of dimensions, each extent as a big-endian uint32, then the
// elements.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "undertow/base/check.h"
#include "undertow/data/arrays.h"
#include "undertow/data/dataset.h"

namespace undertow::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSide = 28;

std::vector<std::string> spellings(const std::string& set, const std::string& what, int rank) {
  std::vector<std::string> names;
  for (const char separator : {'-', '.'})
    for (const char* ending : {"", ".gz"})
      names.push_back(fmt::format("{}-{}{}idx{}-ubyte{}", set, what, separator, rank, ending));
  return names;
}

/// The first of the usual spellings that exists.
fs::path find_file(const fs::path& dir, const std::string& set, const std::string& what, int rank) {
  const std::vector<std::string> names = spellings(set, what, rank);
  for (const std::string& n : names)
    if (fs::is_regular_file(dir / n)) return dir / n;
  throw FileError(fmt::format("{} has none of the files {}", dir.string(), fmt::join(names, ", ")));
}

bool has_any(const fs::path& dir, const std::string& set) {
  const auto exists = [&](const std::string& n) { return fs::is_regular_file(dir / n); };
  return std::ranges::any_of(spellings(set, "images", 3), exists) ||
         std::ranges::any_of(spellings(set, "labels", 1), exists);
}

/// Whole content; zlib tells gzip from plain by the first bytes.
std::vector<std::uint8_t> read_all(const fs::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  UNDERTOW_CHECK(file, FileError, "{} cannot be opened: {}", path.string(), std::strerror(errno));
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> closer(file, gzclose);
  gzbuffer(file, 1u << 18);
  std::vector<std::uint8_t> bytes;
  for (std::size_t at = 0;;) {
    bytes.resize(at + (std::size_t{4} << 20));
    const int n = gzread(file, bytes.data() + at, 4u << 20);
    int code = Z_OK;
    const char* text = gzerror(file, &code);
    // A gzip file that was cut gives its bytes first and the error at the end.
    UNDERTOW_CHECK(n >= 0 && (code == Z_OK || code == Z_STREAM_END), FormatError, "{} is damaged: {} after {} bytes",
                   path.string(), text, at + static_cast<std::size_t>(std::max(n, 0)));
    at += static_cast<std::size_t>(n);
    if (n == 0) {
      bytes.resize(at);
      return bytes;
    }
  }
}

struct Idx {
  std::string path;
  std::vector<std::uint8_t> bytes;
  std::int64_t count = 0;
  std::size_t header = 0;
};

Idx read_idx(const fs::path& path, int rank) {
  Idx idx{path.string(), read_all(path)};
  const auto& b = idx.bytes;
  const auto word = [&](std::size_t at) {
    return std::int64_t{b[at]} << 24 | std::int64_t{b[at + 1]} << 16 | std::int64_t{b[at + 2]} << 8 | b[at + 3];
  };
  idx.header = 4 + 4 * static_cast<std::size_t>(rank);
  UNDERTOW_CHECK(b.size() >= idx.header, FormatError, "{} has {} bytes, fewer than the {} of an IDX header", idx.path,
                 b.size(), idx.header);
  const std::int64_t magic = 0x800 + rank;
  UNDERTOW_CHECK(word(0) == magic, FormatError,
                 "{} is not an IDX file of {} dimension(s): it starts with {:#010x}, not {:#010x}", idx.path, rank,
                 word(0), magic);
  idx.count = word(4);
  std::int64_t row = 1;
  if (rank == 3) {
    UNDERTOW_CHECK(word(8) == kSide && word(12) == kSide, FormatError, "{} holds images of {} x {}, not {} x {}",
                   idx.path, word(8), word(12), kSide, kSide);
    row = kSide * kSide;
  }
  const auto expected = static_cast<std::int64_t>(idx.header) + idx.count * row;
  UNDERTOW_CHECK(static_cast<std::int64_t>(b.size()) == expected, FormatError,
                 "{} has {} bytes, but its header announces {} rows, which take {}: it is {}", idx.path, b.size(),
                 idx.count, expected, static_cast<std::int64_t>(b.size()) < expected ? "cut short" : "too long");
  return idx;
}

std::shared_ptr<Source> load(const std::string& what, const std::string& dir, const std::string& usage) {
  UNDERTOW_CHECK(usage == "train" || usage == "test" || usage == "all", ValueError,
                 "{}: usage must be 'train', 'test' or 'all', got '{}'", what, usage);
  UNDERTOW_CHECK(fs::is_directory(dir), FileError, "{}: there is no folder '{}'", what, dir);
  // "all" is what there is, test rows first as MindSpore has it.
  std::vector<std::string> sets;
  if (usage != "train" && (usage == "test" || has_any(dir, "t10k"))) sets.push_back("t10k");
  if (usage != "test" && (usage == "train" || has_any(dir, "train") || sets.empty())) sets.push_back("train");
  std::vector<std::pair<Idx, Idx>> files;
  std::int64_t rows = 0;
  for (const std::string& set : sets) {
    Idx images = read_idx(find_file(dir, set, "images", 3), 3);
    Idx labels = read_idx(find_file(dir, set, "labels", 1), 1);
    UNDERTOW_CHECK(images.count == labels.count, FormatError, "{} has {} images, but {} has {} labels", images.path,
                   images.count, labels.path, labels.count);
    rows += images.count;
    files.emplace_back(std::move(images), std::move(labels));
  }
  Tensor image(DType::kUInt8, {rows, kSide, kSide, 1}), label(DType::kUInt32, {rows});
  auto* image_at = image.data_as<std::uint8_t>();
  auto* label_at = label.data_as<std::uint32_t>();
  for (const auto& [images, labels] : files) {
    image_at =
        std::copy(images.bytes.begin() + static_cast<std::ptrdiff_t>(images.header), images.bytes.end(), image_at);
    for (std::size_t i = labels.header; i < labels.bytes.size(); ++i) {
      UNDERTOW_CHECK(labels.bytes[i] < 10, FormatError, "{}: label {} of row {} is not in 0..9", labels.path,
                     labels.bytes[i], i - labels.header);
      *label_at++ = labels.bytes[i];
    }
  }
  return std::make_shared<ArraySource>(fmt::format("{}({})", what, dir), std::vector<Tensor>{image, label});
}

}  // namespace

Dataset MnistDataset(const std::string& dataset_dir, const std::string& usage, const SourceOptions& options) {
  return Dataset(load("MnistDataset", dataset_dir, usage), {"image", "label"}, options);
}
Dataset FashionMnistDataset(const std::string& dataset_dir, const std::string& usage, const SourceOptions& options) {
  return Dataset(load("FashionMnistDataset", dataset_dir, usage), {"image", "label"}, options);
}

}  // namespace undertow::data
