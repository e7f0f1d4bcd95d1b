// SPDX-License-Identifier: Apache-2.0
// data/row_message.h: rows as bytes, for memory that processes share.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "undertow/data/lazy.h"

namespace undertow::data {

/// Bytes that `rows` take.
std::size_t packed_size(std::span<const Row> rows);
/// Writes that many. Undefined Tensors stay undefined.
void pack(std::span<const Row> rows, std::byte* to);
/// Copies them out.
std::vector<Row> unpack(const std::byte* from);
/// The only row, whose columns lie in `from` until they are written or taken; `lease` is held that long.
void unpack(const std::byte* from, const std::shared_ptr<void>& lease, LazyRow& out);

}  // namespace undertow::data
