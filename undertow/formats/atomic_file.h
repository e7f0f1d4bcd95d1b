// SPDX-License-Identifier: Apache-2.0
// formats/atomic_file.h: a file that is there as a whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace undertow::formats {

/// Writes beside `path` and takes its place in commit(); without a commit the file that was there stays as it was.
/// Errors are FileErrors that name the path, what failed and why.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();  ///< removes what was not committed
  AtomicFile(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// At a place of its own; write() is not used then. What is never written reads as zeros.
  void write_at(std::uint64_t offset, const void* data, std::size_t bytes);
  /// Everything to the disk, under the temporary name still; nothing can be written afterwards.
  void finish();
  /// finish() if need be, then renames.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_, temporary_;
  int fd_ = -1;
};

}  // namespace undertow::formats
