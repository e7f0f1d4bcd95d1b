// SPDX-License-Identifier: Apache-2.0
// formats/tfrecord.h: TFRecord files of tf.train.Example records.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "undertow/formats/input_file.h"

namespace undertow::formats {

using TfFeature = std::variant<std::vector<std::string>, std::vector<float>, std::vector<std::int64_t>>;
using TfExample = std::map<std::string, TfFeature>;

/// One file. A compressed one is held in memory.
class TfRecordFile {
 public:
  /// compression: "", "GZIP" or "ZLIB". Throws FileError, or FormatError naming file and offset where a record is cut
  /// short or its length is damaged.
  TfRecordFile(const std::string& path, const std::string& compression);

  std::int64_t rows() const { return static_cast<std::int64_t>(records_.size()); }
  /// Throws FormatError naming file, row and offset where the record is damaged or no Example. From any thread.
  TfExample read(std::int64_t row) const;

 private:
  void load(std::uint64_t offset, void* out, std::size_t bytes) const;

  std::string path_;
  std::unique_ptr<InputFile> file_;                               // not compressed
  std::vector<char> content_;                                     // compressed
  std::vector<std::pair<std::uint64_t, std::uint64_t>> records_;  // offset and bytes
};

}  // namespace undertow::formats
