// SPDX-License-Identifier: Apache-2.0
// formats/mindrecord/writer.h: writes MindRecord files.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "undertow/formats/mindrecord/schema.h"

namespace undertow::formats::mindrecord {

/// Writes beside the files' names; commit() gives data files and indexes their names, and only then are earlier files
/// of these names replaced. Without a commit nothing has changed, and what was written is removed with the Writer.
class Writer {
 public:
  /// One shard: the file `path`; more: `path` and their numbers, 0 to shards - 1 in equally many digits. Throws
  /// FileError where one is there already and `overwrite` is false.
  explicit Writer(const std::string& path, int shards = 1, bool overwrite = false);
  /// Goes on after the rows of a file that is one of one. Its schema, page size and header size stay.
  static std::unique_ptr<Writer> append(const std::string& path);
  ~Writer();
  Writer(const Writer&) = delete;

  /// Bytes, before the schema is set: 16 KiB to 128 MiB and 32 KiB to 256 MiB, multiples of 4.
  void set_header_size(std::int64_t bytes);
  void set_page_size(std::int64_t bytes);
  /// Before the first row. Without index fields all numbers and texts become index fields.
  void set_schema(Schema schema);
  const Schema& schema() const;

  /// Writes the records in consecutive parts to the shards, of which none then has more than one row more than another.
  /// Throws ValueError or TypeError naming row and field, and writes nothing, where one does not fit the schema.
  /// Where the disk refuses (FileError), here or in commit(), the files of this writer are removed at once, what was
  /// there before stays, and every later call throws RuntimeError.
  void write(std::span<const Record> records);
  /// To one shard.
  void write_to(int shard, std::span<const Record> records);
  int shards() const;
  std::int64_t rows() const;

  /// May be called once; nothing can be written afterwards.
  void commit();

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace undertow::formats::mindrecord
