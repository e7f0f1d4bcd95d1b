// SPDX-License-Identifier: Apache-2.0
// data/config.h: the settings that every pipeline takes as its defaults.
#pragma once

#include <cstdint>

namespace undertow::data {

struct Config {
  std::uint64_t seed = 5489;     ///< of shuffles and random operations
  int num_parallel_workers = 0;  ///< for operations that name none; 0: min(8, cores)
  int prefetch_size = 16;        ///< batches that an iterator keeps ready
  /// Buffer in which sources without random access are shuffled: rows, and bytes of rows.
  std::int64_t shuffle_rows = 1000, shuffle_bytes = std::int64_t{256} << 20;

  /// Workers go to the slowest stages while a pipeline runs, all of them together as many as there are cores;
  /// num_parallel_workers is only what each begins with.
  bool autotune = false;
  int callback_timeout = 60;  ///< seconds that sync_wait, and callbacks that wait for the training, have patience

  /// Pictures (JPEG) that are made smaller than half their size are decoded at a half, a quarter or an eighth of it.
  /// Faster, and other pixels; only within one pass.
  bool scaled_decode = false;
  bool fuse = true;  ///< operations one after the other become one pass (lazy.h); the values are the same

  /// `num_parallel_workers` with 0 resolved.
  int workers() const;
};

/// Read when a Pipeline or an iterator is created. Change it before that, from one thread.
Config& config();

}  // namespace undertow::data
