// SPDX-License-Identifier: Apache-2.0
// data/callback.h: what is told about the passes of a map operation over its rows.
#pragma once

#include <atomic>
#include <cstdint>

namespace undertow::data {

/// Where a map operation stands. Epochs and steps count from 1; a step is a row (after batch: a batch).
struct DSRunContext {
  std::int64_t cur_epoch_num = 0;
  std::int64_t cur_step_num_in_epoch = 0;
  std::int64_t cur_step_num = 0;
  const std::atomic<bool>* stop = nullptr;  ///< once set, whoever waits gives up: the pipeline is to end
};

/// For MapOptions::callbacks. All calls come from pipeline threads, one at a time in the order of the rows, and what
/// they throw ends the pipeline. An operation with callbacks makes one row at a time, and the pipeline does not begin a
/// batch before there is room for it.
class DSCallback {
 public:
  /// ds_step_begin and ds_step_end come for the first of every `step_size` steps.
  explicit DSCallback(std::int64_t step_size = 1) : step_size_(step_size) {}
  virtual ~DSCallback() = default;
  std::int64_t step_size() const { return step_size_; }
  virtual void ds_begin(const DSRunContext&) {}
  virtual void ds_epoch_begin(const DSRunContext&) {}
  virtual void ds_epoch_end(const DSRunContext&) {}
  virtual void ds_step_begin(const DSRunContext&) {}
  virtual void ds_step_end(const DSRunContext&) {}

 private:
  std::int64_t step_size_;
};

}  // namespace undertow::data
