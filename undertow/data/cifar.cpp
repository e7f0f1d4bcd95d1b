// SPDX-License-Identifier: Apache-2.0
// data/cifar.cpp: CIFAR-10 and CIFAR-100, the binary versions: a record is its label (two for CIFAR-100) and a plane of
// 32 x 32 bytes for each colour. Source: www.cs.toronto.edu/~kriz/cifar.html.
#include <algorithm>
#include <filesystem>

#include "undertow/base/check.h"
#include "undertow/data/arrays.h"
#include "undertow/data/files.h"
#include "undertow/formats/input_file.h"

namespace undertow::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSide = 32, kPlane = kSide * kSide, kColours = 3;

struct Kind {
  const char* name;
  std::vector<std::string> label_columns;
  std::vector<std::uint8_t> classes;               // of each label
  std::string (*set_of)(const std::string& file);  // "train", "test", or "" for another file
};

const Kind& cifar10() {
  static const Kind k{"Cifar10Dataset", {"label"}, {10}, [](const std::string& file) -> std::string {
                        if (file.starts_with("data_batch_") && file.ends_with(".bin")) return "train";
                        return file == "test_batch.bin" ? "test" : "";
                      }};
  return k;
}
const Kind& cifar100() {
  static const Kind k{
      "Cifar100Dataset", {"coarse_label", "fine_label"}, {20, 100}, [](const std::string& file) -> std::string {
        return file == "train.bin" ? "train" : file == "test.bin" ? "test" : "";
      }};
  return k;
}

/// With the labels of its rows, for samplers that go by classes.
class CifarSource final : public ArraySource {
 public:
  CifarSource(std::string name, std::vector<Tensor> columns, const Kind& kind)
      : ArraySource(std::move(name), columns), columns_(std::move(columns)), kind_(kind) {}
  std::optional<std::vector<std::int64_t>> labels(const std::string& column) override {
    const auto it = std::ranges::find(kind_.label_columns, column);
    if (it == kind_.label_columns.end()) return std::nullopt;
    const Tensor& t = columns_[1 + static_cast<std::size_t>(it - kind_.label_columns.begin())];
    return std::vector<std::int64_t>(t.data_as<std::uint32_t>(), t.data_as<std::uint32_t>() + t.size());
  }

 private:
  std::vector<Tensor> columns_;
  const Kind& kind_;
};

Dataset load(const Kind& kind, const std::string& folder, const std::string& usage, const SourceOptions& options) {
  UNDERTOW_CHECK(usage == "train" || usage == "test" || usage == "all", ValueError,
                 "{}: usage must be 'train', 'test' or 'all', got '{}'", kind.name, usage);
  UNDERTOW_CHECK(fs::is_directory(folder), FileError, "{}: there is no folder '{}'", kind.name, folder);
  std::vector<std::pair<std::string, std::string>> files;  // training files before test files, then by name
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string set = kind.set_of(entry.path().filename().string());
    if (!set.empty() && (usage == "all" || usage == set))
      files.emplace_back(set == "test" ? "1" : "0", entry.path().string());
  }
  std::ranges::sort(files);
  UNDERTOW_CHECK(!files.empty(), FileError, "{}: '{}' has none of the .bin files of the {} set", kind.name, folder,
                 usage);
  const std::size_t labels = kind.classes.size(), record = labels + static_cast<std::size_t>(kPlane * kColours);
  std::vector<std::uint8_t> bytes;
  std::vector<std::string> origin;
  std::vector<std::size_t> ends;
  for (const auto& [set, path] : files) {
    const formats::InputFile file(path);
    UNDERTOW_CHECK(file.size() % record == 0, FormatError,
                   "{} has {} bytes, which is no multiple of the {} of a record", path, file.size(), record);
    const std::size_t at = bytes.size();
    bytes.resize(at + static_cast<std::size_t>(file.size()));
    file.read(0, bytes.data() + at, bytes.size() - at);
    ends.push_back(bytes.size() / record);
  }
  const auto rows = static_cast<std::int64_t>(bytes.size() / record);
  std::vector<Tensor> columns{Tensor(DType::kUInt8, {rows, kSide, kSide, kColours})};
  for (std::size_t l = 0; l < labels; ++l) columns.emplace_back(DType::kUInt32, Shape{rows});
  auto* pixel = columns[0].data_as<std::uint8_t>();
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
    const std::uint8_t* p = bytes.data() + r * record;
    for (std::size_t l = 0; l < labels; ++l) {
      const auto file = static_cast<std::size_t>(std::ranges::upper_bound(ends, r) - ends.begin());
      UNDERTOW_CHECK(p[l] < kind.classes[l], FormatError, "{}: {} {} of row {} is not in 0..{}", files[file].second,
                     kind.label_columns[l], p[l], r - (file ? ends[file - 1] : 0), kind.classes[l] - 1);
      columns[1 + l].data_as<std::uint32_t>()[r] = p[l];
    }
    p += labels;
    for (std::int64_t i = 0; i < kPlane; ++i)
      for (std::int64_t c = 0; c < kColours; ++c) *pixel++ = p[c * kPlane + i];
  }
  std::vector<std::string> names{"image"};
  names.insert(names.end(), kind.label_columns.begin(), kind.label_columns.end());
  return Dataset(std::make_shared<CifarSource>(fmt::format("{}({})", kind.name, folder), std::move(columns), kind),
                 std::move(names), options);
}

}  // namespace

Dataset Cifar10Dataset(const std::string& folder, const std::string& usage, const SourceOptions& options) {
  return load(cifar10(), folder, usage, options);
}
Dataset Cifar100Dataset(const std::string& folder, const std::string& usage, const SourceOptions& options) {
  return load(cifar100(), folder, usage, options);
}

}  // namespace undertow::data
