// SPDX-License-Identifier: Apache-2.0
// data/profile.h: where a pipeline's time goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace undertow::data {

/// A source, a map (what it fuses with included) or a batch.
struct StageProfile {
  std::string name;
  std::int64_t samples = 0;       ///< rows that went through it
  double seconds = 0;             ///< spent on them, all workers together
  int workers = 1;                ///< that may work on it at once
  double seconds_per_sample = 0;  ///< of one worker
  double samples_per_second = 0;  ///< that it could give alone, with its workers
  double share = 0;               ///< of the time of all stages, 0 to 1
};

struct Profile {
  std::vector<StageProfile> stages;  ///< in the order of the data
  std::int64_t batches = 0;          ///< (or rows, without batch) made
  double seconds = 0;                ///< since the pipeline started
  double wait_seconds = 0;           ///< the consumer waited for data
  double queue_depth = 0;            ///< batches that lay ready, on average
  std::int64_t queue_size = 0;       ///< batches that there is room for
  std::string bottleneck;            ///< one sentence
  /// A table, and the sentence.
  std::string str() const;
};

}  // namespace undertow::data
