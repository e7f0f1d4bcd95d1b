// SPDX-License-Identifier: Apache-2.0
// train/sink.h: a dataset flowing into a channel: where data meets execution.
#pragma once

#include <memory>
#include <vector>

#include "undertow/data/pipeline.h"
#include "undertow/runtime/channel.h"

namespace undertow::train {

/// The channel as the pipeline sees it.
class ChannelSink final : public data::BatchSink {
 public:
  explicit ChannelSink(const std::vector<data::ColumnSpec>& specs);
  runtime::Channel& channel() { return channel_; }

  std::size_t acquire(std::int64_t sequence, std::span<const data::ColumnSpec> specs,
                      std::span<data::BatchTarget> out) override;
  data::BatchTarget resize(std::int64_t sequence, void* token, std::span<const data::ColumnSpec> specs) override;
  void publish(std::int64_t sequence, std::span<void* const> tokens, bool last_of_epoch) override;
  void fail(std::int64_t sequence, std::exception_ptr error) override;
  void end(std::int64_t total) override;
  void cancel() override;
  std::int64_t taken() override;
  std::int64_t places() override { return channel_.num_slots(); }

 private:
  struct Known {
    std::vector<data::ColumnSpec> specs;
    std::vector<runtime::ColumnType> types;
  };
  const std::vector<runtime::ColumnType>& types_for(std::span<const data::ColumnSpec> specs);

  runtime::Channel channel_;
  std::vector<Known> known_;  // full batches, short ones; used by acquire, which runs on one thread at a time
};

/// Pipeline, sink and channel of one run. The pipeline starts with it and is stopped by its end.
class Feed {
 public:
  /// `size`: batches of an epoch, or not positive where not known.
  Feed(const data::Dataset& dataset, const data::PipelineOptions& options, std::int64_t size);
  ~Feed();
  Feed(const Feed&) = delete;
  runtime::Channel& channel() { return sink_.channel(); }
  /// So many steps of the run are done, which have waited `wait_seconds` for data.
  void reached(std::int64_t steps, double wait_seconds);

 private:
  std::int64_t first_epoch_, first_batch_, size_;
  data::Pipeline pipeline_;
  ChannelSink sink_;
};

}  // namespace undertow::train
