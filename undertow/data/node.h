// SPDX-License-Identifier: Apache-2.0
// data/node.h: the immutable tree behind Dataset handles, and what is found out about it without a pipeline.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "undertow/data/callback.h"
#include "undertow/data/dataset.h"
#include "undertow/data/lazy.h"

namespace undertow::data {

using NodePtr = std::shared_ptr<const Node>;

/// A sequential pass that describe() has begun: its rows are replayed to the first pipeline.
struct Primed {
  std::unique_ptr<Cursor> cursor;
  std::vector<Row> rows;
  bool ended = false;
};

/// Rows made once and kept, up to a number of bytes. For rows of sources with random access.
class RowCache {
 public:
  explicit RowCache(std::size_t most_bytes) : most_(most_bytes) {}
  bool find(const void* source, std::int64_t row, Row& out) const;
  void keep(const void* source, std::int64_t row, const Row& made);

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<const void*, std::int64_t>, Row> rows_;
  std::size_t bytes_ = 0, most_;
  bool noted_ = false;
};

/// How many batches sync_wait lets through.
class SyncPoint {
 public:
  SyncPoint(std::string name, std::int64_t batches, std::function<void(const void*)> callback)
      : name_(std::move(name)), batches_(batches), released_(batches), callback_(std::move(callback)) {}
  const std::string& name() const { return name_; }
  /// A new epoch: `batches` are let through.
  void reset();
  /// For one batch. Throws RuntimeError after config().callback_timeout, Stopped where `stop` was set.
  void wait(const std::atomic<bool>* stop);
  /// Calls the callback, then lets more through; 0: as many as at the start.
  void release(std::int64_t batches, const void* data);

 private:
  std::string name_;
  std::int64_t batches_, released_;
  std::function<void(const void*)> callback_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// Where the latest iterator or training stands: 40 bits for the batch, the epoch above.
struct Progress {
  explicit Progress(std::uint64_t seed_of_draws, const Position& from)
      : seed(seed_of_draws), at(pack(from.epoch, from.batch)) {}
  static std::int64_t pack(std::int64_t epoch, std::int64_t batch) { return (epoch << 40) + batch; }
  Position position() const {
    const std::int64_t v = at.load(std::memory_order_relaxed);
    return {seed, v >> 40, v & ((std::int64_t{1} << 40) - 1)};
  }
  const std::uint64_t seed;
  std::atomic<std::int64_t> at;
};

/// What has been learned about a node; guarded, because handles are shared.
struct NodeMemory {
  std::mutex mutex;
  std::optional<std::vector<ColumnSpec>> specs;
  std::optional<std::int64_t> counted;
  std::unique_ptr<Primed> primed;      // sequential sources
  std::int64_t passes = 0;             // times open() was called
  std::shared_ptr<Progress> progress;  // of the latest pipeline over it
  std::optional<Position> resume;      // where the next one starts
  std::optional<Profile> profile;      // of the latest pipeline that has ended
};

struct Node {
  enum class Kind {
    kSource,
    kMap,
    kBatch,
    kShuffle,
    kRepeat,
    kTake,
    kSkip,
    kProject,
    kZip,
    kConcat,
    kFilter,
    kFreeze,
    kCache,
    kBucket,
    kSync
  };

  Kind kind;
  std::vector<NodePtr> inputs;
  std::vector<std::string> names;  // columns it delivers
  int workers = 0;                 // as asked for; 0: default

  // kSource
  std::shared_ptr<Source> source;
  std::shared_ptr<const Sampler> sampler;  // random access
  std::int64_t limit = 0;                  // sequential: rows per epoch, 0: all
  int num_shards = 1, shard_id = 0;        // sequential
  // kMap, kProject: output column k is op output place[k], or input column ~place[k]
  std::shared_ptr<MapOp> op;
  std::vector<int> op_inputs;
  int op_outputs = 0;
  std::vector<int> place;
  std::vector<std::shared_ptr<DSCallback>> callbacks;  // kMap
  // kSync
  std::shared_ptr<SyncPoint> sync;
  // kFilter
  std::function<bool(const Row&)> predicate;
  // kBatch: size and drop; kShuffle, kRepeat, kTake, kSkip: count
  std::int64_t count = 0;
  bool drop_remainder = false;
  std::shared_ptr<CollateOp> collate;
  std::function<std::int64_t(std::int64_t batch, std::int64_t epoch)> batch_size;  // in the place of count
  // kShuffle: bytes of rows that the buffer may hold, 0: any number
  std::int64_t most_bytes = 0;
  // kCache
  std::shared_ptr<RowCache> cache;
  // kBucket: a row of length l goes to the first bucket whose boundary is above l
  std::function<std::int64_t(const Row&)> length;
  std::vector<std::int64_t> boundaries;
  std::vector<NodePtr> buckets;  // a batch node each

  std::unique_ptr<NodeMemory> memory = std::make_unique<NodeMemory>();

  bool sequential() const { return source->size() < 0; }
};

/// Rows per epoch, or -1 where that needs a run. An endless repeat counts as one pass.
std::int64_t known_size(const Node& node);
/// Why an epoch has no batches, with numbers: "0 batches: ...".
std::string why_empty(const Node& node);
/// See Dataset::describe.
std::vector<ColumnSpec> describe(const Node& node);
/// Opens a pass over a sequential source; the first one gets what describe() has pulled. Throws DataError where a
/// source that gives its rows once is asked again.
std::unique_ptr<Cursor> open_pass(const Node& node, std::int64_t epoch);

/// Rows that a batch node's batch is to have.
std::int64_t batch_size_of(const Node& node, std::int64_t batch, std::int64_t epoch);
/// Where a row goes, in a bucket node.
std::size_t bucket_of(const Node& node, const Row& row);

/// Applies a map or project node to a row. Throws DataError where the operation gives another number of columns than
/// announced.
void apply(const Node& map, LazyRow& row, const RowContext& context);
/// Throws DataError naming both unless the source has given as many columns as there are names.
void check_columns(const Node& source, const Row& row);
void check_columns(const Node& source, const LazyRow& row);
/// Stacks rows. Throws DataError naming column, row and both shapes where they differ.
Row stack(const Node& batch, std::span<const Row> rows);
/// The same for one column, called `column` in messages.
Tensor stack_column(const std::string& column, std::span<const Tensor> rows);
[[noreturn]] void throw_ragged(const std::string& column, std::int64_t row, const Shape& first, DType first_dtype,
                               const Shape& other, DType other_dtype);

}  // namespace undertow::data
