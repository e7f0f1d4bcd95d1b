// SPDX-License-Identifier: Apache-2.0
// data/files.h: datasets that read files.
//
// All are shuffled by default and have random access. A missing file or folder raises FileError, a damaged one
// FormatError naming the file and the place.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "undertow/data/dataset.h"

namespace undertow::data {

struct MindOptions : SourceOptions {
  std::vector<std::string> columns;  ///< default: all, by name
  /// Rows that are added at the end, each with these columns.
  std::int64_t num_padded = 0;
  std::map<std::string, Tensor> padded_sample;
  bool siblings = true;  ///< a single path stands for all files of its set
};
/// MindRecord files: one path stands for all files of its set (see siblings), several for themselves. Numbers have rank
/// 0, texts are text columns (strings.h), bytes are uint8 of rank 1, arrays have their schema's shape.
Dataset MindDataset(const std::vector<std::string>& files, const MindOptions& options = {});

struct FolderOptions : SourceOptions {
  std::vector<std::string> extensions;                 ///< ".jpg"; default: every file
  std::map<std::string, std::int64_t> class_indexing;  ///< default: the folders' names in order, from 0
};
/// A folder with a folder of images for each class. Columns: image uint8 (bytes of the file), label int32 ().
Dataset ImageFolderDataset(const std::string& folder, const FolderOptions& options = {});

/// The binary version: data_batch_*.bin and test_batch.bin of any length. usage: "train", "test" or "all". Columns:
/// image uint8 (32, 32, 3), label uint32 ().
Dataset Cifar10Dataset(const std::string& folder, const std::string& usage = "all", const SourceOptions& options = {});
/// train.bin and test.bin. Columns: image uint8 (32, 32, 3), coarse_label uint32 (), fine_label uint32 ().
Dataset Cifar100Dataset(const std::string& folder, const std::string& usage = "all", const SourceOptions& options = {});

/// Lines of text files, held in memory; empty ones are left out. Column: text ().
Dataset TextFileDataset(const std::vector<std::string>& files, const SourceOptions& options = {});

/// What stands for an empty field, and with it the column's type: int32, float32 or text.
using CsvDefault = std::variant<std::int32_t, float, std::string>;
struct CsvOptions : SourceOptions {
  char delimiter = ',';
  std::vector<std::string> columns;  ///< default: the first line of every file
  std::vector<CsvDefault> defaults;  ///< default: texts
};
/// CSV files, held in memory. A field in double quotes may hold delimiters and line ends, and "" for a quote.
Dataset CSVDataset(const std::vector<std::string>& files, const CsvOptions& options = {});

struct TfColumn {
  std::string name;
  std::optional<DType>
      dtype;          ///< default: float32, int64, or texts of bytes, as the feature is; uint8: bytes themselves
  bool text = false;  ///< bytes are UTF-8
  std::optional<std::vector<std::int64_t>> shape;  ///< default: one dimension
};
struct TfRecordOptions : SourceOptions {
  std::vector<TfColumn> columns;  ///< default: the features of the first record, by name
  std::string compression;        ///< "", "GZIP" or "ZLIB"; compressed files are held in memory
};
Dataset TFRecordDataset(const std::vector<std::string>& files, const TfRecordOptions& options = {});

}  // namespace undertow::data
