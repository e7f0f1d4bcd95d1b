// SPDX-License-Identifier: Apache-2.0
// data/tfrecord.cpp: rows of TFRecord files.
#include "undertow/formats/tfrecord.h"

#include <algorithm>
#include <cstring>

#include "undertow/base/check.h"
#include "undertow/data/files.h"
#include "undertow/data/strings.h"

namespace undertow::data {
namespace {

using formats::TfExample;
using formats::TfFeature;

/// Texts of bytes, as wide as the longest.
Tensor bytes_tensor(const std::vector<std::string>& values) {
  std::size_t width = 1;
  for (const std::string& v : values) width = std::max(width, v.size());
  Tensor t = text_tensor(DType::kUInt8, {static_cast<std::int64_t>(values.size())}, static_cast<std::int64_t>(width));
  auto* p = static_cast<char*>(t.data());
  for (const std::string& v : values) p = std::fill_n(std::copy(v.begin(), v.end(), p), width - v.size(), '\0');
  return t;
}

class TfSource final : public Source {
 public:
  TfSource(const std::vector<std::string>& files, const TfRecordOptions& o) : columns_(o.columns) {
    UNDERTOW_CHECK(!files.empty(), ValueError, "TFRecordDataset: no file is given");
    name_ = fmt::format("TFRecordDataset({})", files[0]);
    for (const std::string& path : files) {
      files_.push_back(std::make_unique<formats::TfRecordFile>(path, o.compression));
      ends_.push_back(size() + files_.back()->rows());
    }
    if (!columns_.empty() || size() == 0) return;
    for (const auto& [column, feature] : example(0)) columns_.push_back({column, {}, false, {}});
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const TfColumn& c : columns_) out.push_back(c.name);
    if (out.empty()) out.push_back("data");  // a dataset without rows
    return out;
  }
  std::string name() const override { return name_; }
  std::int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  bool waits() const override { return false; }
  void fetch(std::int64_t index, Row& out) override {
    const TfExample row = example(index);
    for (const TfColumn& c : columns_) {
      const auto it = row.find(c.name);
      UNDERTOW_CHECK(it != row.end(), DataError, "row {} of {} has no feature '{}'", index, name_, c.name);
      out.push_back(column(c, it->second, index));
    }
  }
  std::vector<std::int64_t> file_rows() const override {
    std::vector<std::int64_t> out;
    for (const auto& f : files_) out.push_back(f->rows());
    return out;
  }

 private:
  TfExample example(std::int64_t row) const {
    const auto file = static_cast<std::size_t>(std::ranges::upper_bound(ends_, row) - ends_.begin());
    return files_[file]->read(file ? row - ends_[file - 1] : row);
  }
  Tensor column(const TfColumn& c, const TfFeature& feature, std::int64_t row) const {
    Tensor t;
    if (const auto* floats = std::get_if<std::vector<float>>(&feature)) t = Tensor(*floats);
    else if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&feature)) t = Tensor(*whole);
    const auto* texts = std::get_if<std::vector<std::string>>(&feature);
    if (texts && c.text) t = text_of(*texts);
    else if (texts && c.dtype == DType::kUInt8) {  // the bytes themselves, such as those of an image
      std::string all;
      for (const std::string& v : *texts) all += v;
      t = Tensor(std::span<const std::uint8_t>(reinterpret_cast<const std::uint8_t*>(all.data()), all.size()));
    } else if (texts) {
      UNDERTOW_CHECK(!c.dtype, DataError, "row {} of {}: the feature '{}' holds bytes, not {}", row, name_, c.name,
                     name_of(*c.dtype));
      t = bytes_tensor(*texts);
    } else if (c.dtype) {
      t = t.to(*c.dtype);
    }
    if (!c.shape) return t;
    Shape shape;
    std::int64_t known = 1;
    for (const std::int64_t d : *c.shape) known *= d < 0 ? 1 : d;
    const std::int64_t n = is_text(t) ? text_shape(t).numel() : t.size();
    for (const std::int64_t d : *c.shape) shape.push_back(d >= 0 ? d : known ? n / known : 0);
    UNDERTOW_CHECK(shape.numel() == n, DataError, "row {} of {}: the feature '{}' has {} values, its shape is [{}]",
                   row, name_, c.name, n, fmt::join(*c.shape, ", "));
    if (is_text(t)) shape.push_back(t.shape().back());
    return t.view(shape);
  }

  std::string name_;
  std::vector<TfColumn> columns_;
  std::vector<std::unique_ptr<formats::TfRecordFile>> files_;
  std::vector<std::int64_t> ends_;
};

}  // namespace

Dataset TFRecordDataset(const std::vector<std::string>& files, const TfRecordOptions& options) {
  auto source = std::make_shared<TfSource>(files, options);
  auto names = source->names();
  return Dataset(std::move(source), std::move(names), options);
}

}  // namespace undertow::data
