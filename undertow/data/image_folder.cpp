// SPDX-License-Identifier: Apache-2.0
// data/image_folder.cpp: a folder of images for each class.
#include <algorithm>
#include <filesystem>

#include "undertow/base/check.h"
#include "undertow/data/files.h"
#include "undertow/formats/input_file.h"

namespace undertow::data {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

class FolderSource final : public Source {
 public:
  FolderSource(const std::string& folder, const FolderOptions& o) : folder_(folder) {
    UNDERTOW_CHECK(fs::is_directory(folder), FileError, "ImageFolderDataset: there is no folder '{}'", folder);
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_directory()) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    UNDERTOW_CHECK(!names.empty(), FileError, "ImageFolderDataset: '{}' has no folders, which would be the classes",
                   folder);
    if (o.class_indexing.empty()) {
      for (const std::string& n : names) classes_.emplace_back(n, static_cast<std::int64_t>(classes_.size()));
    } else {
      for (const auto& [n, label] : o.class_indexing) {
        UNDERTOW_CHECK(std::ranges::binary_search(names, n), FileError,
                       "ImageFolderDataset: '{}' has no folder '{}', which class_indexing names", folder, n);
        classes_.emplace_back(n, label);
      }
    }
    std::vector<std::string> endings;
    for (const std::string& e : o.extensions) endings.push_back(lower(e));
    for (const auto& [n, label] : classes_) {
      const std::size_t first = files_.size();
      for (const auto& entry : fs::directory_iterator(fs::path(folder) / n)) {
        if (!entry.is_regular_file()) continue;
        const std::string ending = lower(entry.path().extension().string());
        if (endings.empty() || std::ranges::find(endings, ending) != endings.end())
          files_.push_back({entry.path().string(), static_cast<std::int32_t>(label)});
      }
      std::sort(files_.begin() + static_cast<std::ptrdiff_t>(first), files_.end());
    }
  }
  std::string name() const override { return fmt::format("ImageFolderDataset({})", folder_); }
  std::string origin(std::int64_t index) const override { return files_[static_cast<std::size_t>(index)].first; }
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  bool waits() const override { return false; }
  void fetch(std::int64_t index, Row& out) override {
    const auto& [path, label] = files_[static_cast<std::size_t>(index)];
    const formats::InputFile file(path);
    Tensor image(DType::kUInt8, {static_cast<std::int64_t>(file.size())});
    file.read(0, image.data(), image.nbytes());
    out = Row{image, Tensor::scalar(label)};
  }
  std::optional<std::vector<std::int64_t>> labels(const std::string& column) override {
    if (column != "label") return std::nullopt;
    std::vector<std::int64_t> out;
    for (const auto& f : files_) out.push_back(f.second);
    return out;
  }
  std::vector<std::pair<std::string, std::int64_t>> classes() const override { return classes_; }

 private:
  std::string folder_;
  std::vector<std::pair<std::string, std::int64_t>> classes_;
  std::vector<std::pair<std::string, std::int32_t>> files_;
};

}  // namespace

Dataset ImageFolderDataset(const std::string& folder, const FolderOptions& options) {
  return Dataset(std::make_shared<FolderSource>(folder, options), {"image", "label"}, options);
}

}  // namespace undertow::data
