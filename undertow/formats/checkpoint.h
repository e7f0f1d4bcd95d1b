// SPDX-License-Identifier: Apache-2.0
// formats/checkpoint.h: MindSpore's .ckpt files (named tensors and texts), read and written.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "undertow/tensor/tensor.h"

namespace undertow::formats {

/// A named tensor, or a named text (UTF-8) where `tensor` is undefined.
struct CheckpointEntry {
  std::string name;
  Tensor tensor;
  std::string text;
};

/// Writes the entries in their order. The file is there as a whole or not at all. With `crc` a CRC-32 of its content
/// follows it. Throws FileError where the file cannot be written.
void save_checkpoint(const std::string& path, std::span<const CheckpointEntry> entries, bool crc = false);

/// All entries in the file's order. A CRC at its end is passed over; with `check_crc` it is compared.
/// Throws FileError where the file cannot be read, FormatError (naming path, offset and entry) where it is not a
/// checkpoint, is cut short, or its CRC does not fit.
std::vector<CheckpointEntry> load_checkpoint(const std::string& path, bool check_crc = false);
/// Whether the file ends with a CRC.
bool has_crc(const std::string& path);

}  // namespace undertow::formats
