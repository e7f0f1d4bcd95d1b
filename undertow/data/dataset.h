// SPDX-License-Identifier: Apache-2.0
// data/dataset.h: datasets as values: sources and the operations on them.
//
//   auto train = data::MnistDataset("mnist", "train")
//                    .map([](const Tensor& image) { return image.to(DType::kFloat32); }, {.input_columns = {"image"}})
//                    .batch(32, {.drop_remainder = true});
//   for (const data::Row& row : train) ...
//
// A Dataset is a handle to an immutable tree of nodes: every method gives a new Dataset and one Dataset may be the base
// of any number of others. Nothing runs before an iterator, a Pipeline or describe().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "undertow/data/config.h"
#include "undertow/data/profile.h"
#include "undertow/data/row.h"
#include "undertow/data/source.h"

namespace undertow::data {

struct Node;
class DSCallback;
class RowIterator;
class DictIterator;

/// What is shuffled: all rows; the order of the files, or the rows within each file, of sources that read files.
enum class ShuffleMode { kRows, kFiles, kWithinFiles };

/// Common to all sources. `sampler` excludes shuffle, num_samples and shards (ValueError).
struct SourceOptions {
  std::optional<bool> shuffle;   ///< default: true with random access, false without
  int num_parallel_workers = 0;  ///< threads that fetch; 0: one
  std::int64_t num_samples = 0;  ///< rows per epoch, without repetition; 0: all
  int num_shards = 0;            ///< 0: not sharded
  int shard_id = -1;
  std::shared_ptr<const Sampler> sampler;  ///< random access only
  ShuffleMode mode = ShuffleMode::kRows;   ///< where shuffle is true
};
struct BatchOptions {
  bool drop_remainder = false;
  std::shared_ptr<CollateOp> collate;  ///< default: stack, and refuse rows that differ in shape or dtype
  int num_parallel_workers = 0;
  std::vector<std::string> output_columns;  ///< with collate: names of what it gives; default: as before
  /// In the place of batch_size: that of each batch, by its number in the epoch and the epoch's, both from 0.
  std::function<std::int64_t(std::int64_t batch, std::int64_t epoch)> batch_size;
};
/// How a column is padded. Extents of -1, or no shape at all: up to the largest in the batch.
struct Padding {
  std::optional<std::vector<std::int64_t>> shape;
  double value = 0;
  std::string text;  ///< of text columns
};
using PadInfo = std::map<std::string, Padding>;
struct BucketOptions {
  std::vector<std::int64_t> boundaries;   ///< ascending
  std::vector<std::int64_t> batch_sizes;  ///< one more than boundaries
  /// Of the rows's chosen columns; default: the first extent of the only one.
  std::function<std::int64_t(const Row&)> length;
  PadInfo padding;
  bool pad_to_boundary = false;  ///< extents of -1 become the bucket's boundary - 1
  bool drop_remainder = false;
};
struct MapOptions {
  std::vector<std::string> input_columns;   ///< default: the first one for Tensor -> Tensor (applied to each), else all
  std::vector<std::string> output_columns;  ///< default: the input columns
  int num_parallel_workers = 0;             ///< 0: config().num_parallel_workers
  std::vector<std::shared_ptr<DSCallback>> callbacks;
};

/// Between two batches (or rows, without batch) of a pass over a dataset: what is needed to go on from there.
struct Position {
  std::uint64_t seed = 0;  ///< of shuffles and random operations
  std::int64_t epoch = 0;  ///< from 0
  std::int64_t batch = 0;  ///< of the epoch, that comes next
  friend bool operator==(const Position&, const Position&) = default;
};

/// What map() takes: an operation, or a callable Tensor -> Tensor or Row -> Row, each with or without a RowContext. A
/// callable is called from several threads unless num_parallel_workers is 1.
class MapFunction {
 public:
  MapFunction(std::shared_ptr<MapOp> op) : op_(std::move(op)) {}
  template <typename F>
    requires(!std::is_convertible_v<F, std::shared_ptr<MapOp>> && !std::is_same_v<std::decay_t<F>, MapFunction>)
  MapFunction(F f) {
    if constexpr (std::is_invocable_r_v<Row, F&, const Row&, const RowContext&>) op_ = of_rows(std::move(f));
    else if constexpr (std::is_invocable_r_v<Row, F&, const Row&>)
      op_ = of_rows([f = std::move(f)](const Row& r, const RowContext&) mutable -> Row { return f(r); });
    else if constexpr (std::is_invocable_r_v<Tensor, F&, const Tensor&, const RowContext&>)
      op_ = of_tensors(std::move(f));
    else {
      static_assert(std::is_invocable_r_v<Tensor, F&, const Tensor&>, "map takes Tensor -> Tensor or Row -> Row");
      op_ = of_tensors([f = std::move(f)](const Tensor& t, const RowContext&) mutable -> Tensor { return f(t); });
    }
  }
  const std::shared_ptr<MapOp>& op() const { return op_; }

 private:
  static std::shared_ptr<MapOp> of_rows(std::function<Row(const Row&, const RowContext&)> f);
  static std::shared_ptr<MapOp> of_tensors(std::function<Tensor(const Tensor&, const RowContext&)> f);
  std::shared_ptr<MapOp> op_;
};

class Dataset {
 public:
  explicit Dataset(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  /// Any source. Throws ValueError for options that do not go together.
  Dataset(std::shared_ptr<Source> source, std::vector<std::string> column_names, const SourceOptions& options = {});

  /// Rows become batches: every column gains a leading dimension. Without drop_remainder the last batch may be short.
  /// Rows that differ in shape or dtype raise DataError. batch_size >= 1.
  Dataset batch(std::int64_t batch_size, const BatchOptions& options = {}) const;
  /// As batch, with the columns that `padding` names, or all where it names none, padded to one shape.
  Dataset padded_batch(std::int64_t batch_size, const PadInfo& padding = {}, const BatchOptions& options = {}) const;
  /// Batches of rows of about one length: a row of length l goes to the first bucket whose boundary is above l (the
  /// last bucket has none), and a bucket that is full becomes a batch. Rows are made in order, on one thread.
  Dataset bucket_batch_by_length(const std::vector<std::string>& columns, const BucketOptions& options) const;
  /// Keeps each row, as it is here, once it was made; `most_bytes` 0: any number of bytes, else rows beyond that are
  /// made anew each time. For sources with random access: those without are read each time.
  Dataset cache(std::size_t most_bytes = 0) const;
  /// Other columns are kept. As many outputs as inputs take the inputs' places; otherwise they come first. Before batch
  /// it works on rows, after batch on whole batches.
  Dataset map(MapFunction function, const MapOptions& options = {}) const;
  /// Draws from a buffer of that many rows (or batches), anew each epoch. buffer_size >= 2.
  /// `most_bytes` other than 0 ends the buffer where its rows have that many bytes.
  Dataset shuffle(std::int64_t buffer_size, std::int64_t most_bytes = 0) const;
  /// -1: without end. Each pass counts as an epoch for shuffles and random operations.
  Dataset repeat(std::int64_t count = -1) const;
  Dataset take(std::int64_t count = -1) const;  ///< -1: all. count >= 1.
  Dataset skip(std::int64_t count) const;
  Dataset rename(const std::vector<std::string>& from, const std::vector<std::string>& to) const;
  Dataset project(const std::vector<std::string>& columns) const;
  /// Columns side by side; as long as the shortest. Column names must differ.
  Dataset zip(const std::vector<Dataset>& others) const;
  /// One after the other. Column names must be equal.
  Dataset concat(const Dataset& other) const;
  /// Keeps rows for which `predicate` of the input columns (default: all) holds. Runs in order, on one thread.
  Dataset filter(std::function<bool(const Row&)> predicate, const std::vector<std::string>& input_columns = {}) const;
  /// Parts of the given numbers of rows, which never share a row in any epoch. `randomize`: chosen by the seed, and
  /// shuffled anew each epoch within the part. Needs a known size.
  std::vector<Dataset> split(const std::vector<std::int64_t>& sizes, bool randomize = true) const;

  /// Every batch (here: of this dataset) waits until it is let through: num_batch at the start of an epoch, more with
  /// each sync_update. RuntimeError after config().callback_timeout.
  Dataset sync_wait(const std::string& condition_name, std::int64_t num_batch = 1,
                    std::function<void(const void* data)> callback = {}) const;
  /// Calls the callback of the sync_wait of that name with `data`, then lets num_batch more (0: as many as at the
  /// start) through. Throws ValueError where there is none.
  void sync_update(const std::string& condition_name, std::int64_t num_batch = 0, const void* data = nullptr) const;

  /// Behind the last batch that the latest iterator or training of this dataset has given; the start where there was
  /// none.
  Position state() const;
  /// The next iterator or training of this dataset begins there, with the same rows as the one that had come that far;
  /// its first epoch is what is left of one. Sources without random access are read up to there. Throws ValueError for
  /// a position that the dataset does not have.
  void load_state(const Position& position) const;

  /// Runs up to that many batches as fast as they come. batches >= 1.
  Profile profile(std::int64_t batches = 100) const;
  /// Of the latest iterator or training of this dataset that has ended; nothing where there was none.
  std::optional<Profile> last_profile() const;

  /// Steps per epoch. Where it is not known beforehand (sequential sources, filter) one pass is run and counted; -1 for
  /// a source that gives its rows only once. Endless repeats count as one pass.
  std::int64_t get_dataset_size() const;
  /// The same without running anything: -1 where not known.
  std::int64_t known_size() const;
  std::int64_t get_batch_size() const;    ///< 1 without batch; that of the first where they differ
  std::int64_t get_repeat_count() const;  ///< 1 without repeat; -1 endless
  std::vector<std::string> get_col_names() const;
  /// Names of the classes and their numbers, where the first source has some.
  std::vector<std::pair<std::string, std::int64_t>> classes() const;
  /// Names, dtypes and full shapes of what is delivered. Works on the first row (the first batch, for maps after
  /// batch); a sequential source keeps the rows pulled for it. The result is kept. Throws DataError without rows.
  std::vector<ColumnSpec> describe() const;
  std::vector<Shape> output_shapes() const;
  std::vector<DType> output_types() const;

  /// num_epochs -1: endless. See RowIterator.
  RowIterator create_tuple_iterator(std::int64_t num_epochs = -1) const;
  DictIterator create_dict_iterator(std::int64_t num_epochs = -1) const;

  class iterator;  // one epoch: for (const Row& row : dataset)
  iterator begin() const;
  std::nullptr_t end() const { return nullptr; }

  const std::shared_ptr<const Node>& node() const { return node_; }

 private:
  std::shared_ptr<const Node> node_;
};

/// Rows (or batches) of one epoch after the other, prepared ahead by threads that end with the iterator. The Tensors
/// are the caller's own; memory comes back to the iterator when they are dropped.
class RowIterator {
 public:
  RowIterator(const Dataset& dataset, std::int64_t num_epochs);
  ~RowIterator();  ///< joins the threads
  RowIterator(RowIterator&&) noexcept;
  RowIterator& operator=(RowIterator&&) noexcept;

  /// The next row; nothing at the end of each epoch, after which the next epoch begins. RuntimeError once all epochs
  /// are over. What a source or map threw is thrown here, at the place of its batch. While it waits, `poll` is called
  /// every 50 ms, and may throw.
  std::optional<Row> next(const std::function<void()>& poll = {});
  /// Behind the last row given.
  Position state() const;
  Profile profile() const;
  /// Asks for an early end: a blocked next() returns nothing. From any thread.
  void stop();

  Dataset::iterator begin();
  std::nullptr_t end() const { return nullptr; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// As RowIterator, with the columns by name.
class DictIterator {
 public:
  DictIterator(const Dataset& dataset, std::int64_t num_epochs);
  std::optional<std::map<std::string, Tensor>> next();

 private:
  std::vector<std::string> names_;
  RowIterator rows_;
};

class Dataset::iterator {
 public:
  explicit iterator(RowIterator* rows) : rows_(rows) { ++*this; }
  explicit iterator(std::shared_ptr<RowIterator> own) : own_(std::move(own)), rows_(own_.get()) { ++*this; }
  const Row& operator*() const { return *row_; }
  const Row* operator->() const { return &*row_; }
  iterator& operator++() {
    row_ = rows_->next();
    return *this;
  }
  bool operator==(std::nullptr_t) const { return !row_; }

 private:
  std::shared_ptr<RowIterator> own_;
  RowIterator* rows_;
  std::optional<Row> row_;
};

/// Gives the next row of a pass, nothing at its end.
using RowGenerator = std::function<std::optional<Row>()>;

/// Random access: `row(i)` for i in [0, size). Shuffled by default. `row` is called from num_parallel_workers threads.
Dataset GeneratorDataset(std::function<Row(std::int64_t)> row, std::int64_t size, std::vector<std::string> column_names,
                         const SourceOptions& options = {});
/// Sequential: `pass()` is called at the start of each epoch. Rows are pulled by one thread at a time. shuffle = true
/// draws from a buffer, config().shuffle_rows rows or config().shuffle_bytes bytes, whichever is less.
Dataset GeneratorDataset(std::function<RowGenerator()> pass, std::vector<std::string> column_names,
                         const SourceOptions& options = {});

/// Arrays sliced on their first dimension, shared and not copied: they must not change while in use. Names default to
/// column_0, column_1, ... Throws ValueError where the lengths differ or an array has rank 0.
Dataset NumpySlicesDataset(std::vector<Tensor> columns, std::vector<std::string> column_names = {},
                           const SourceOptions& options = {});

/// IDX files, plain or gzip (told by content), read into memory. usage: "train", "test" or "all". Columns: image uint8
/// (28, 28, 1), label uint32 (). Throws FileError for a missing folder or file, FormatError naming the file and what is
/// wrong with it.
Dataset MnistDataset(const std::string& dataset_dir, const std::string& usage = "all",
                     const SourceOptions& options = {});
Dataset FashionMnistDataset(const std::string& dataset_dir, const std::string& usage = "all",
                            const SourceOptions& options = {});

}  // namespace undertow::data
