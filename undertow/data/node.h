// SPDX-License-Identifier: Apache-2.0
// data/node.h: the immutable tree behind Dataset handles, and what is found out about it without a pipeline.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "undertow/data/dataset.h"

namespace undertow::data {

using NodePtr = std::shared_ptr<const Node>;

/// A sequential pass that describe() has begun: its rows are replayed to the first pipeline.
struct Primed {
  std::unique_ptr<Cursor> cursor;
  std::vector<Row> rows;
  bool ended = false;
};

/// What has been learned about a node; guarded, because handles are shared.
struct NodeMemory {
  std::mutex mutex;
  std::optional<std::vector<ColumnSpec>> specs;
  std::optional<std::int64_t> counted;
  std::unique_ptr<Primed> primed;  // sequential sources
  std::int64_t passes = 0;         // times open() was called
};

struct Node {
  enum class Kind { kSource, kMap, kBatch, kShuffle, kRepeat, kTake, kSkip, kProject, kZip, kConcat, kFilter, kFreeze };

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
  // kFilter
  std::function<bool(const Row&)> predicate;
  // kBatch: size and drop; kShuffle, kRepeat, kTake, kSkip: count
  std::int64_t count = 0;
  bool drop_remainder = false;
  std::shared_ptr<CollateOp> collate;

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

/// Applies a map node to a row. Throws DataError where the operation gives another number of columns than announced.
Row apply(const Node& map, Row row, const RowContext& context);
/// Throws DataError naming both unless the source has given as many columns as there are names.
void check_columns(const Node& source, const Row& row);
/// Stacks rows. Throws DataError naming column, row and both shapes where they differ.
Row stack(const Node& batch, std::span<const Row> rows);
[[noreturn]] void throw_ragged(const std::string& column, std::int64_t row, const Shape& first, DType first_dtype,
                               const Shape& other, DType other_dtype);

}  // namespace undertow::data
