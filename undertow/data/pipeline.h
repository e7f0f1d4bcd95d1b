// SPDX-License-Identifier: Apache-2.0
// data/pipeline.h: runs a dataset on threads of its own and writes batches straight into memory of the consumer.
//
// Order operations act on streams of row numbers under one lock; the work on rows (fetch, map, copy) runs on the
// workers, a batch per worker, each row written to its place in the target. Small batches are handled in runs, so that
// lock and wake-up are paid once per run. What is delivered does not depend on the number of workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "undertow/data/dataset.h"

namespace undertow::data {

/// Thrown by BatchSink::acquire once the consumer has asked to stop. Not an error.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "the pipeline was stopped"; }
};

/// Memory for one batch: one pointer per column, in the order of the specs; each at least as large as the spec says.
struct BatchTarget {
  std::span<std::byte* const> columns;  ///< valid until published
  void* token = nullptr;                ///< the sink's own mark for this place
};

/// The consumer's side. Sequences count delivered batches (or rows, without batch) from 0, across epochs.
class BatchSink {
 public:
  virtual ~BatchSink() = default;
  /// Places for the batches `sequence`, `sequence + 1`, ..., which all have these specs. Blocks until at least one
  /// place is free, then fills as many of `out` as are free at once; returns how many (>= 1). Called by one thread at a
  /// time, in sequence order, while the pipeline's order is locked. Throws Stopped when told to stop.
  virtual std::size_t acquire(std::int64_t sequence, std::span<const ColumnSpec> specs, std::span<BatchTarget> out) = 0;
  /// The batch at this place has turned out to have other shapes or dtypes than announced (ragged data): gives memory
  /// for `specs` at the same place, whose token may change. May run on several workers at once, for different
  /// sequences.
  virtual BatchTarget resize(std::int64_t sequence, void* token, std::span<const ColumnSpec> specs) = 0;
  /// Batches sequence, sequence + 1, ... are written; one token each. `last_of_epoch` is meant for the last of them.
  /// May be called out of order and on several workers at once.
  virtual void publish(std::int64_t sequence, std::span<void* const> tokens, bool last_of_epoch) = 0;
  /// Batch `sequence` failed; every one before it is or will be published, those after it may never come. May be called
  /// for more than one sequence: the consumer raises the error of the first that it reaches.
  virtual void fail(std::int64_t sequence, std::exception_ptr error) = 0;
  /// All epochs are over: there is no sequence `total`. Earlier ones may still be on their way.
  virtual void end(std::int64_t total) = 0;
  /// Called by Pipeline::stop(): makes a blocked acquire, and every later one, throw Stopped.
  virtual void cancel() = 0;
  /// Batches that the consumer has taken, and places there are; for profiles only. -1 where not known.
  virtual std::int64_t taken() { return -1; }
  virtual std::int64_t places() { return -1; }
};

struct PipelineOptions {
  std::optional<std::uint64_t> seed;  ///< default: config().seed
  std::int64_t num_epochs = 1;        ///< -1: endless
  std::int64_t first_epoch = 0;       ///< number of the first epoch (for resuming)
  std::int64_t first_batch = 0;       ///< batches of the first epoch to leave out (for resuming)
};

/// `options` with the position that Dataset::load_state has left for the next pipeline, which is taken.
PipelineOptions resume(const Dataset& dataset, PipelineOptions options);

class Pipeline {
 public:
  /// Describes the dataset (see Dataset::describe) and checks it: throws DataError where an epoch would have 0 batches.
  Pipeline(const Dataset& dataset, const PipelineOptions& options = {});
  ~Pipeline();  ///< stops
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// What is delivered, as far as the first row tells.
  const std::vector<ColumnSpec>& specs() const;
  /// Threads that will run. A sink has at least this many places, better two more.
  int workers() const;
  /// Starts the threads; they persist over epochs. `sink` must outlive stop(). May be called once.
  void start(BatchSink& sink);
  /// Cancels the sink and joins the threads; a row being worked on is finished first. May be called at any time, twice.
  /// Its profile is then Dataset::last_profile.
  void stop();
  /// The consumer has got as far as there, and has waited that long in all; for Dataset::state and profiles.
  void reached(std::int64_t epoch, std::int64_t batch, double wait_seconds);
  Position position() const;  ///< the last that was reached
  Profile profile() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace undertow::data
