// SPDX-License-Identifier: Apache-2.0
// data/mindrecord.cpp: rows of MindRecord files.
#include <algorithm>

#include "undertow/base/check.h"
#include "undertow/data/files.h"
#include "undertow/data/lazy.h"
#include "undertow/data/strings.h"
#include "undertow/formats/mindrecord/reader.h"

namespace undertow::data {
namespace {

namespace mr = formats::mindrecord;

/// A column of bytes that is read when it is wanted, to where it is wanted.
class StoredBytes final : public Pending {
 public:
  StoredBytes(const mr::Reader& reader, std::int64_t row) : reader_(reader), row_(row) {}
  DType dtype() const override { return DType::kUInt8; }
  Shape shape() const override { return {static_cast<std::int64_t>(reader_.bytes_in(row_))}; }
  void write(std::byte* to) override { reader_.read_bytes(row_, to); }

 private:
  const mr::Reader& reader_;
  std::int64_t row_;
};

class MindSource final : public Source {
 public:
  MindSource(const std::vector<std::string>& files, const MindOptions& o)
      : reader_(files, o.siblings), padded_(o.num_padded), wanted_(reader_.schema().fields.size(), false) {
    for (std::size_t i = 0; i < wanted_.size() && o.columns.empty(); ++i) fields_.push_back(i);
    for (const std::string& c : o.columns) {
      const int at = reader_.schema().find(c);
      UNDERTOW_CHECK(at >= 0, ValueError, "{} has no column '{}'; it has {}", name(), c, fmt::join(all_names(), ", "));
      fields_.push_back(static_cast<std::size_t>(at));
    }
    for (const std::size_t f : fields_) wanted_[f] = static_cast<int>(f) != reader_.bytes_field();
    UNDERTOW_CHECK(padded_ >= 0, ValueError, "num_padded must not be negative, got {}", padded_);
    UNDERTOW_CHECK((padded_ > 0) == !o.padded_sample.empty(), ValueError, "padded_sample and num_padded go together");
    if (padded_ == 0) return;
    for (const std::string& c : names()) {
      const auto it = o.padded_sample.find(c);
      UNDERTOW_CHECK(it != o.padded_sample.end(), ValueError, "padded_sample has no column '{}'", c);
      sample_.push_back(it->second);
    }
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const std::size_t f : fields_) out.push_back(reader_.schema().fields[f].name);
    return out;
  }

  std::string name() const override { return fmt::format("MindDataset({})", reader_.files()[0]); }
  std::string origin(std::int64_t index) const override {
    std::size_t file = 0;
    for (const std::int64_t rows : reader_.file_rows()) {
      if (index < rows) return fmt::format("row {} of {}", index, reader_.files()[file]);
      index -= rows;
      ++file;
    }
    return "the padded sample";
  }
  std::int64_t size() const override { return reader_.rows() + padded_; }
  bool waits() const override { return false; }
  void fetch(std::int64_t index, Row& out) override {
    LazyRow row(Row(), false);
    fetch_lazy({.sample = index}, row);
    out = std::move(row.finish());
  }
  void fetch_lazy(const RowContext& at, LazyRow& out) override {
    const std::int64_t index = at.sample;
    Row& row = out.refill(out.fuse());
    if (index >= reader_.rows()) {
      row = sample_;
      return;
    }
    thread_local mr::Record record;
    reader_.read(index, wanted_, record);
    row.resize(fields_.size());
    for (std::size_t c = 0; c < fields_.size(); ++c) {
      if (static_cast<int>(fields_[c]) == reader_.bytes_field())
        out.set(c, std::make_unique<StoredBytes>(reader_, index));
      else row[c] = tensor_of(reader_.schema().fields[fields_[c]].type, record[fields_[c]]);
    }
    for (const std::size_t f : fields_)  // holds no row beyond this call
      if (auto* t = std::get_if<Tensor>(&record[f])) *t = Tensor();
  }
  std::vector<std::int64_t> file_rows() const override { return reader_.file_rows(); }

  std::optional<std::vector<std::int64_t>> labels(const std::string& column) override {
    const int at = reader_.schema().find(column);
    if (at < 0) return std::nullopt;
    const mr::Field& field = reader_.schema().fields[static_cast<std::size_t>(at)];
    if (field.is_blob() || (field.type != mr::FieldType::kInt32 && field.type != mr::FieldType::kInt64))
      return std::nullopt;
    std::vector<bool> only(wanted_.size(), false);
    only[static_cast<std::size_t>(at)] = true;
    std::vector<std::int64_t> out;
    mr::Record record;
    for (std::int64_t i = 0; i < reader_.rows(); ++i) {
      reader_.read(i, only, record);
      out.push_back(std::get<std::int64_t>(record[static_cast<std::size_t>(at)]));
    }
    return out;
  }

 private:
  std::vector<std::string> all_names() const {
    std::vector<std::string> out;
    for (const mr::Field& f : reader_.schema().fields) out.push_back(f.name);
    return out;
  }
  static Tensor tensor_of(mr::FieldType type, const mr::Value& value) {
    if (const auto* t = std::get_if<Tensor>(&value)) return *t;
    if (const auto* text = std::get_if<std::string>(&value)) return text_of(*text);
    switch (type) {
      case mr::FieldType::kInt32: return Tensor::scalar(static_cast<std::int32_t>(std::get<std::int64_t>(value)));
      case mr::FieldType::kInt64: return Tensor::scalar(std::get<std::int64_t>(value));
      case mr::FieldType::kFloat32: return Tensor::scalar(static_cast<float>(std::get<double>(value)));
      default: return Tensor::scalar(std::get<double>(value));
    }
  }

  mr::Reader reader_;
  std::int64_t padded_;
  std::vector<bool> wanted_;
  std::vector<std::size_t> fields_;  // places in the schema, in the order of the columns
  Row sample_;
};

}  // namespace

Dataset MindDataset(const std::vector<std::string>& files, const MindOptions& options) {
  auto source = std::make_shared<MindSource>(files, options);
  auto names = source->names();
  return Dataset(std::move(source), std::move(names), options);
}

}  // namespace undertow::data
