// SPDX-License-Identifier: Apache-2.0
#include "undertow/formats/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "undertow/base/check.h"

namespace undertow::formats {

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  UNDERTOW_CHECK(fd_ >= 0, FileError, "{} cannot be read: {}", path_, std::strerror(errno));
  struct stat status{};
  const bool regular = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) ::close(fd_);
  UNDERTOW_CHECK(regular, FileError, "{} cannot be read: it is not a file", path_);
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::read(std::uint64_t offset, void* out, std::size_t bytes) const {
  auto* next = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd_, next, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    UNDERTOW_CHECK(got >= 0, FileError, "{} cannot be read at offset {}: {}", path_, offset, std::strerror(errno));
    UNDERTOW_CHECK(got > 0, FormatError, "{} is cut short: it ends at offset {}, where {} more bytes are needed", path_,
                   offset, bytes);
    next += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

void InputFile::read(std::uint64_t offset, void* head, std::size_t head_bytes, void* body,
                     std::size_t body_bytes) const {
  const iovec parts[] = {{head, head_bytes}, {body, body_bytes}};
  const ssize_t got = ::preadv(fd_, parts, 2, static_cast<off_t>(offset));
  if (got == static_cast<ssize_t>(head_bytes + body_bytes)) return;
  // Cut short, interrupted or failed: in steps, which say what it is.
  read(offset, head, head_bytes);
  read(offset + head_bytes, body, body_bytes);
}

}  // namespace undertow::formats
