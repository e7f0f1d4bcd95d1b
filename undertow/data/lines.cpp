// SPDX-License-Identifier: Apache-2.0
// data/lines.cpp: text files and CSV files, held in memory.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "undertow/base/check.h"
#include "undertow/data/files.h"
#include "undertow/data/strings.h"
#include "undertow/formats/input_file.h"

namespace undertow::data {
namespace {

struct TextFile {
  std::string path, content;
  std::vector<std::string_view> lines;
};

/// With `quotes` a line end between double quotes is part of the line.
std::unique_ptr<TextFile> load(const std::string& path, bool quotes) {
  auto file = std::make_unique<TextFile>();
  const formats::InputFile input(path);
  file->path = path;
  file->content.resize(static_cast<std::size_t>(input.size()));
  input.read(0, file->content.data(), file->content.size());
  const std::string_view all = file->content;
  bool inside = false;
  for (std::size_t start = all.starts_with("\xEF\xBB\xBF") ? 3 : 0, at = start; at <= all.size(); ++at) {
    if (at < all.size() && quotes && all[at] == '"') inside = !inside;
    if (at < all.size() && (all[at] != '\n' || inside)) continue;
    std::string_view line = all.substr(start, at - start);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) file->lines.push_back(line);
    start = at + 1;
  }
  UNDERTOW_CHECK(!inside, FormatError, "{} ends between double quotes", path);
  return file;
}

class LinesSource : public Source {
 public:
  LinesSource(const char* what, const std::vector<std::string>& paths, bool quotes) {
    UNDERTOW_CHECK(!paths.empty(), ValueError, "{}: no file is given", what);
    name_ = fmt::format("{}({})", what, paths[0]);
    for (const std::string& p : paths) files_.push_back(load(p, quotes));
  }
  std::string name() const override { return name_; }
  std::int64_t size() const override {
    std::int64_t n = 0;
    for (const auto& f : files_) n += static_cast<std::int64_t>(f->lines.size());
    return n;
  }
  bool waits() const override { return false; }
  std::vector<std::int64_t> file_rows() const override {
    std::vector<std::int64_t> out;
    for (const auto& f : files_) out.push_back(static_cast<std::int64_t>(f->lines.size()));
    return out;
  }
  void fetch(std::int64_t index, Row& out) override {
    for (const auto& f : files_) {
      const auto n = static_cast<std::int64_t>(f->lines.size());
      if (index < n) return row_of(*f, index, out);
      index -= n;
    }
  }

 protected:
  virtual void row_of(const TextFile& file, std::int64_t line, Row& out) const {
    out = Row{text_of(file.lines[static_cast<std::size_t>(line)])};
  }
  std::string name_;
  std::vector<std::unique_ptr<TextFile>> files_;
};

std::vector<std::string> split(std::string_view line, char delimiter, const std::string& where) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') fields.back() += c;
      else if (i + 1 < line.size() && line[i + 1] == '"') fields.back() += line[++i];
      else quoted = false;
    } else if (c == delimiter) {
      fields.emplace_back();
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else {
      fields.back() += c;
    }
  }
  UNDERTOW_CHECK(!quoted, FormatError, "{}: a double quote is not closed", where);
  return fields;
}

class CsvSource final : public LinesSource {
 public:
  CsvSource(const std::vector<std::string>& paths, const CsvOptions& o)
      : LinesSource("CSVDataset", paths, true), delimiter_(o.delimiter), names_(o.columns), defaults_(o.defaults) {
    for (const auto& f : files_) {
      if (!o.columns.empty()) break;
      UNDERTOW_CHECK(!f->lines.empty(), FormatError, "{} is empty: its first line should name the columns", f->path);
      auto names = split(f->lines[0], delimiter_, f->path + ", line 1");
      UNDERTOW_CHECK(names_.empty() || names == names_, FormatError, "{} has the columns {}, {} has {}",
                     files_[0]->path, fmt::join(names_, ", "), f->path, fmt::join(names, ", "));
      names_ = std::move(names);
      f->lines.erase(f->lines.begin());
    }
    if (defaults_.empty()) defaults_.assign(names_.size(), std::string());
    UNDERTOW_CHECK(defaults_.size() == names_.size(), ValueError, "{}: {} column_defaults for {} columns", name_,
                   defaults_.size(), names_.size());
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  void row_of(const TextFile& file, std::int64_t line, Row& out) const override {
    const auto where = [&] { return fmt::format("{}, row {}", file.path, line); };
    const auto fields = split(file.lines[static_cast<std::size_t>(line)], delimiter_, where());
    UNDERTOW_CHECK(fields.size() == names_.size(), FormatError, "{} has {} fields for {} columns", where(),
                   fields.size(), names_.size());
    for (std::size_t c = 0; c < fields.size(); ++c) {
      const std::string& f = fields[c];
      const bool empty = f.empty();
      if (const auto* text = std::get_if<std::string>(&defaults_[c])) {
        out.push_back(text_of(empty ? *text : f));
      } else if (const auto* whole = std::get_if<std::int32_t>(&defaults_[c])) {
        out.push_back(Tensor::scalar(empty ? *whole : number<std::int32_t>(f, c, where)));
      } else {
        out.push_back(Tensor::scalar(empty ? std::get<float>(defaults_[c]) : number<float>(f, c, where)));
      }
    }
  }
  template <typename T, typename F>
  T number(std::string_view text, std::size_t column, F&& where) const {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    if (text.starts_with('+')) text.remove_prefix(1);
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    UNDERTOW_CHECK(error == std::errc() && end == text.data() + text.size(), FormatError,
                   "{}: '{}' in column '{}' is no {}", where(), text, names_[column],
                   std::is_same_v<T, float> ? "number" : "whole number of 32 bits");
    return value;
  }

  char delimiter_;
  std::vector<std::string> names_;
  std::vector<CsvDefault> defaults_;
};

}  // namespace

Dataset TextFileDataset(const std::vector<std::string>& files, const SourceOptions& options) {
  return Dataset(std::make_shared<LinesSource>("TextFileDataset", files, false), {"text"}, options);
}

Dataset CSVDataset(const std::vector<std::string>& files, const CsvOptions& options) {
  auto source = std::make_shared<CsvSource>(files, options);
  auto names = source->names();
  return Dataset(std::move(source), std::move(names), options);
}

}  // namespace undertow::data
