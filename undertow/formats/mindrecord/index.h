// SPDX-License-Identifier: Apache-2.0
// formats/mindrecord/index.h: the SQLite file beside a MindRecord file: where each row lies, and its index fields.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "undertow/formats/mindrecord/header.h"

namespace undertow::formats::mindrecord {

/// A row of the index. Offsets are from the start of the page and include the record's length.
struct IndexRow {
  std::int64_t row = 0;
  std::int64_t raw_page = 0, raw_start = 0, raw_end = 0;
  std::int64_t group = 0;
  std::int64_t blob_page = 0, blob_start = 0, blob_end = 0;
};

/// Writes beside `path` and takes its place in commit(). Errors are FileErrors.
class IndexWriter {
 public:
  /// `data_name`: the data file's name without its folder.
  IndexWriter(std::string path, const std::string& data_name, const Schema& schema);
  ~IndexWriter();
  IndexWriter(const IndexWriter&) = delete;

  /// `fields`: the values of the schema's index fields, in their order.
  void add(const IndexRow& row, const std::vector<Value>& fields);
  /// Writes everything to the disk; the file has its temporary name still.
  void finish();
  /// finish() if need be, then renames.
  void commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The rows as the index has them, or nothing where it is missing, unreadable or not that of the data file: the number
/// of rows differs, or a row does not lie within its pages.
std::optional<std::vector<Place>> read_index(const std::string& path, const InputFile& file, const Header& header);

/// Values of the index fields, from the row itself.
std::vector<Value> index_fields(const Schema& schema, const Record& record);

}  // namespace undertow::formats::mindrecord
