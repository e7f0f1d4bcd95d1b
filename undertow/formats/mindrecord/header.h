// SPDX-License-Identifier: Apache-2.0
// formats/mindrecord/header.h: the JSON at the start of a MindRecord file: schema and pages.
//
// A file is its header's length (little-endian uint64), the header, and from `header_size` on pages of `page_size`
// bytes, by their id. A page holds records of one kind, each its length (little-endian uint64) and its bytes. Record i
// is the i-th one of the raw pages with the i-th one of the blob pages. The raw parts of the rows of a blob page (its
// row group) lie together in one raw page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "undertow/formats/input_file.h"
#include "undertow/formats/mindrecord/schema.h"

namespace undertow::formats::mindrecord {

inline constexpr std::uint64_t kDefaultHeader = 16u << 20, kLeastHeader = 16u << 10, kMostHeader = 128u << 20;
inline constexpr std::uint64_t kDefaultPage = 32u << 20, kLeastPage = 32u << 10, kMostPage = 256u << 20;
inline constexpr std::uint64_t kLength = 8;  ///< bytes of a record's length

struct RowGroup {
  std::int64_t id = 0;       ///< place of the blob page among the blob pages
  std::uint64_t offset = 0;  ///< in the raw page
};

struct Page {
  bool blob = false;
  std::int64_t id = 0;               ///< its place in the file
  std::int64_t kind_id = 0;          ///< its place among the pages of its kind
  std::uint64_t used = 0;            ///< bytes
  std::int64_t first = 0, past = 0;  ///< rows of a blob page
  std::vector<RowGroup> groups;      ///< of a raw page
};

struct Header {
  std::uint64_t header_size = kDefaultHeader, page_size = kDefaultPage;
  Schema schema;
  std::vector<Page> pages;
  std::vector<std::string> shards;  ///< file names, without folders
  std::int64_t shard = 0;           ///< which of them this file is
  std::int64_t saved = 0;           ///< bytes saved by packing, over all shards

  std::int64_t rows() const;
  std::uint64_t start_of(const Page& page) const {
    return header_size + static_cast<std::uint64_t>(page.id) * page_size;
  }
};

/// The bytes at the start of the file: length and JSON. Throws ValueError where they are more than header_size.
std::string write_header(const Header& header);
/// Throws FormatError naming file and offset for anything that is not the header of a whole MindRecord file.
Header read_header(const InputFile& file);

/// Where a row lies. Offsets are from the start of the file, to the record's length; bytes are without it.
struct Place {
  std::uint64_t raw = 0, blob = 0;
  std::uint32_t raw_bytes = 0, blob_bytes = 0;
};
/// All rows, found by going through the pages. Throws FormatError.
std::vector<Place> scan(const InputFile& file, const Header& header);

}  // namespace undertow::formats::mindrecord
