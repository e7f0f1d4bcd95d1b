// SPDX-License-Identifier: Apache-2.0
// formats/input_file.h: a file that is read at any place, from any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace undertow::formats {

class InputFile {
 public:
  /// Throws FileError where it cannot be opened or is no regular file.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Throws FormatError naming the offset where the file ends before that, FileError where reading fails.
  void read(std::uint64_t offset, void* out, std::size_t bytes) const;
  /// The same to two places, one after the other.
  void read(std::uint64_t offset, void* head, std::size_t head_bytes, void* body, std::size_t body_bytes) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace undertow::formats
