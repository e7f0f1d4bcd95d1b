// SPDX-License-Identifier: Apache-2.0
// Any bytes as a MindRecord file: rows, or FormatError. The file has no index beside it, so that all of it is read.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "undertow/formats/mindrecord/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("undertow-fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (file < 0 || ftruncate(file, 0) != 0) std::abort();
  if (pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  try {
    const undertow::formats::mindrecord::Reader reader({path}, false);
    for (std::int64_t i = 0; i < reader.rows() && i < 100; ++i) reader.read(i);
  } catch (const undertow::FormatError&) {
  }
  return 0;
}
