// SPDX-License-Identifier: Apache-2.0
// data/source.h: what a pipeline is built from: sources of rows, operations on rows, and orders of row numbers.
//
// These are the seams for host languages: a Python callable and a C++ one are the same to the pipeline. All calls come
// from pipeline threads (describe() and prepare(): from the caller's thread). An implementation that needs a lock of
// its host language takes it inside the call; a caller that waits for a pipeline must not hold that lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "undertow/base/philox.h"
#include "undertow/data/row.h"

namespace undertow::data {

class LazyRow;  // lazy.h

/// One pass over a sequential source.
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// Writes the next row; false at the end. Called by one thread at a time, in order.
  virtual bool next(Row& out) = 0;
};

/// Which row is to be made: what a random draw may depend on. Equal for every number of workers.
struct RowContext {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;   ///< pass over the source, counting the passes of repeat()
  std::int64_t sample = 0;  ///< row number in the source; after batch: batch number in the epoch
  std::uint32_t op = 0;     ///< place of the operation, counted from the source
  /// Once set, whoever waits for the row gives up with Stopped (pipeline.h). Null: never.
  const std::atomic<bool>* stop = nullptr;

  /// A generator for this call alone.
  PhiloxStream random() const {
    return PhiloxStream(seed + (std::uint64_t{op} + 1) * 0x9E3779B97F4A7C15ull,
                        (static_cast<std::uint64_t>(epoch) << 40) ^ static_cast<std::uint64_t>(sample));
  }
};

/// A part of a pipeline that may need something of its own while a pipeline runs: worker processes.
class Stage {
 public:
  virtual ~Stage() = default;
  /// Called on the caller's thread before the pipeline's threads start; `workers` of them will call this part. What it
  /// gives is kept until those threads have ended.
  virtual std::shared_ptr<void> prepare(int /*workers*/) { return nullptr; }
};

/// A source of rows: random access (size() >= 0, fetch) or sequential (size() == -1, open).
class Source : public Stage {
 public:
  /// For messages: "GeneratorDataset", "MnistDataset(/data)".
  virtual std::string name() const { return "the source"; }
  /// Where row `index` comes from, for messages: its file. Empty where there is nothing to say.
  virtual std::string origin(std::int64_t /*index*/) const { return {}; }
  /// Number of rows; -1 for a sequential source.
  virtual std::int64_t size() const = 0;
  /// Random access: writes row `index`. `out` comes empty. For sources whose rows depend on nothing else.
  virtual void fetch(std::int64_t index, Row& out);
  /// Random access, what a pipeline calls: writes row `at.sample`, with columns that may still have to be read; `out`
  /// comes empty. Pending columns may outlive neither the source nor the call for the next row.
  virtual void fetch_lazy(const RowContext& at, LazyRow& out);
  /// Sequential: starts a pass. Called once per epoch.
  virtual std::unique_ptr<Cursor> open(std::int64_t epoch);
  /// Random access, optional: copies whole rows at once. Row indices[k] of column c goes to column_dst[c] + k * (bytes
  /// of one row of c); a null column_dst[c] is skipped. Only for sources whose rows all have one shape. Returns false,
  /// writing nothing, where there is no such path.
  virtual bool gather(std::span<const std::int64_t> indices, std::span<std::byte* const> column_dst);
  /// fetch and gather may run on several threads at once.
  virtual bool thread_safe() const { return true; }
  /// Rows are fetched one at a time in the order of delivery (for sources that draw from a global generator).
  virtual bool ordered() const { return false; }
  /// Sequential: gives its rows once; a second pass is an error that names the source.
  virtual bool single_pass() const { return false; }
  /// May wait for something else than this CPU, so that more workers than cores are of use. False: workers are clamped.
  virtual bool waits() const { return true; }
  /// Nice level of the threads that run it.
  virtual int nice() const { return 19; }
  /// The number in `column` of every row, for samplers that go by classes; nothing where that is not to be had.
  virtual std::optional<std::vector<std::int64_t>> labels(const std::string& /*column*/) { return std::nullopt; }
  /// Rows in each of the files that it reads, in their order; empty where it does not read rows from files.
  virtual std::vector<std::int64_t> file_rows() const { return {}; }
  /// Names of the classes and their numbers, where the source has some.
  virtual std::vector<std::pair<std::string, std::int64_t>> classes() const { return {}; }
};

/// An operation on the chosen columns of a row (or of a batch, after batch).
class MapOp : public Stage {
 public:
  virtual std::string name() const { return "map"; }
  virtual Row operator()(const Row& in, const RowContext& context) = 0;
  /// The same in place, on columns that may still have to be made: an operation that can adds its own work to theirs.
  virtual void extend(LazyRow& row, const RowContext& context);
  /// Columns it takes when the user names none: that many leading ones; -1: all.
  virtual int arity() const { return -1; }
  virtual bool thread_safe() const { return true; }
  virtual bool ordered() const { return false; }  ///< one call at a time, in row order
  virtual bool waits() const { return true; }
  virtual int nice() const { return 19; }
};

/// Makes a batch of rows by other means than stacking (padding, a user's function). Gives whole columns.
class CollateOp : public Stage {
 public:
  /// context.sample is the batch's number in the epoch.
  virtual Row operator()(std::span<const Row> rows, const RowContext& context) = 0;
  virtual bool thread_safe() const { return true; }
  virtual int nice() const { return 19; }
};

/// The order in which the rows of a random-access source are visited in an epoch.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Rows per epoch, given the rows of the source.
  virtual std::int64_t size(std::int64_t rows) const = 0;
  /// Writes the epoch's row numbers; `out` comes empty, with its capacity kept. Depends on the arguments only.
  virtual void order(std::int64_t rows, std::uint64_t seed, std::int64_t epoch,
                     std::vector<std::int64_t>& out) const = 0;
  /// A sampler that needs to know the source gives the one that does; null: this one will do.
  virtual std::shared_ptr<const Sampler> bind(Source& /*source*/) const { return nullptr; }
};

/// `parent` chooses among the rows that `child` has chosen.
std::shared_ptr<const Sampler> ChainedSampler(std::shared_ptr<const Sampler> child,
                                              std::shared_ptr<const Sampler> parent);
/// Rows that lie in files one after the other, `file_rows` in each: with `files` the order of the files is drawn every
/// epoch, with `rows` the order within each.
std::shared_ptr<const Sampler> FileOrderSampler(std::vector<std::int64_t> file_rows, bool files, bool rows);
/// `num_val` rows of each of the first `num_class` (0: all) classes, class after class; a class with fewer rows starts
/// over. With `shuffle`, classes and rows are drawn anew every epoch. The source tells the classes by `class_column`:
/// TypeError when the dataset is made where it cannot.
std::shared_ptr<const Sampler> PKSampler(std::int64_t num_val, std::int64_t num_class = 0, bool shuffle = false,
                                         std::string class_column = "label", std::int64_t num_samples = 0);

/// Rows start, start + 1, ...; `num_samples` 0: all.
std::shared_ptr<const Sampler> SequentialSampler(std::int64_t start_index = 0, std::int64_t num_samples = 0);
/// A permutation per epoch; with `replacement`, independent draws.
std::shared_ptr<const Sampler> RandomSampler(bool replacement = false, std::int64_t num_samples = 0);
/// The given rows, in that order. Throws IndexError at run time for a row the source does not have.
std::shared_ptr<const Sampler> SubsetSampler(std::vector<std::int64_t> indices, std::int64_t num_samples = 0);
/// The given rows, shuffled per epoch.
std::shared_ptr<const Sampler> SubsetRandomSampler(std::vector<std::int64_t> indices, std::int64_t num_samples = 0);
/// Row i with probability weights[i] / sum. Throws ValueError for negative weights or a sum that is not positive.
std::shared_ptr<const Sampler> WeightedRandomSampler(std::vector<double> weights, std::int64_t num_samples = 0,
                                                     bool replacement = true);
/// Shard `shard_id` of `num_shards`: positions shard_id, shard_id + num_shards, ... of the epoch's order (one
/// permutation for all shards), wrapped round so that every shard has ceil(rows / num_shards) rows. `offset` >= 0
/// shifts the start.
std::shared_ptr<const Sampler> DistributedSampler(int num_shards, int shard_id, bool shuffle = true,
                                                  std::int64_t num_samples = 0, std::int64_t offset = -1);

}  // namespace undertow::data
