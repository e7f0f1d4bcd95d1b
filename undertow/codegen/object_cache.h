// SPDX-License-Identifier: Apache-2.0
// codegen/object_cache.h: compiled objects on disk, under $UNDERTOW_CACHE_DIR (default ~/.cache/undertow).
//
// UNDERTOW_CACHE=0 switches it off. Whatever is wrong with an entry or with the folder is a miss, never an error:
// results do not depend on the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "undertow/base/hash.h"

namespace undertow::codegen {

class ObjectCache {
 public:
  /// From the environment, read at each construction.
  ObjectCache();
  ObjectCache(std::string folder, std::uint64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  /// The object stored under `key` if it is there and whole. Marks it as used now.
  std::optional<std::string> find(const Digest& key) const;
  /// Stores through a temporary file and a rename, so that other processes see all of it or nothing; then removes the
  /// entries used longest ago while the folder holds more than its maximum.
  void store(const Digest& key, const std::string& object) const;

  bool enabled() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }
  std::string path_of(const Digest& key) const { return folder_ + "/" + key.hex() + ".o"; }

 private:
  void evict() const;
  std::string folder_;  // empty: off
  std::uint64_t max_bytes_ = std::uint64_t{256} << 20;
};

/// A hash of the library this code is in: its build id, or else its size and time.
Digest build_digest();

}  // namespace undertow::codegen
