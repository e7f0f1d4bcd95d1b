// SPDX-License-Identifier: Apache-2.0
#include "undertow/formats/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "undertow/base/error.h"

namespace undertow::formats {

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  static std::atomic<unsigned> count{0};
  // Of this process and this file alone, so that two writers of one path do not mix: the later commit wins.
  temporary_ = fmt::format("{}.tmp{}-{}", path_, ::getpid(), count++);
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("cannot be written");
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd_, next, bytes);
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("could not be written in full");
    }
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::write_at(std::uint64_t offset, const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::pwrite(fd_, next, bytes, static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("could not be written in full");
    }
    next += written;
    offset += static_cast<std::uint64_t>(written);
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::finish() {
  if (fd_ < 0) return;
  if (::fsync(fd_) != 0) fail("could not be written to the disk");
  if (::close(std::exchange(fd_, -1)) != 0) fail("could not be written to the disk");
}

void AtomicFile::commit() {
  finish();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("could not take its name");
  temporary_.clear();
}

void AtomicFile::fail(const char* what) const {
  throw FileError(fmt::format("{} {}: {}", path_, what, std::strerror(errno)));
}

}  // namespace undertow::formats
