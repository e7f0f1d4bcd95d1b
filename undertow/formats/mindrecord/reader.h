// SPDX-License-Identifier: Apache-2.0
// formats/mindrecord/reader.h: MindRecord files, read row by row in any order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "undertow/formats/mindrecord/schema.h"

namespace undertow::formats::mindrecord {

/// One data set in one or more files. Renamed files are read as well. A file whose index (".db") is missing or is not
/// its own gets a new one, in memory where its folder cannot be written. All calls but the constructor may be made from
/// several threads at once.
class Reader {
 public:
  /// With `siblings` a single path stands for all files of its set, which lie in the same folder.
  /// Throws FileError for a missing file, naming it; FormatError naming file and offset for a damaged one, or for files
  /// that are not of one set.
  explicit Reader(const std::vector<std::string>& paths, bool siblings = true);
  ~Reader();
  Reader(const Reader&) = delete;

  const Schema& schema() const;
  std::int64_t rows() const;
  const std::vector<std::string>& files() const;
  /// Rows of each file, which follow one another.
  const std::vector<std::int64_t>& file_rows() const;

  /// Row `row` in [0, rows()): the fields that `wanted` asks for (by place in the schema); the others' values are left
  /// as they are. Throws FormatError naming file, row and offset.
  void read(std::int64_t row, const std::vector<bool>& wanted, Record& record) const;
  Record read(std::int64_t row) const;

  /// The place in the schema of a field of bytes that is the only one in the blob pages, or -1. It need not be read with
  /// the others:
  int bytes_field() const;
  /// how many bytes it has in `row`, in [0, rows()), which the index says;
  std::size_t bytes_in(std::int64_t row) const;
  /// and these, to where they are wanted. Throws as read().
  void read_bytes(std::int64_t row, void* out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace undertow::formats::mindrecord
