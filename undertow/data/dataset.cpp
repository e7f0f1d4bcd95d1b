// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/dataset.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "undertow/base/check.h"
#include "undertow/data/node.h"
#include "undertow/data/padding.h"
#include "undertow/data/stream.h"

namespace undertow::data {
namespace {

class RowFunction : public MapOp {
 public:
  explicit RowFunction(std::function<Row(const Row&, const RowContext&)> f) : f_(std::move(f)) {}
  Row operator()(const Row& in, const RowContext& context) override { return f_(in, context); }

 private:
  std::function<Row(const Row&, const RowContext&)> f_;
};

class TensorFunction : public MapOp {
 public:
  explicit TensorFunction(std::function<Tensor(const Tensor&, const RowContext&)> f) : f_(std::move(f)) {}
  Row operator()(const Row& in, const RowContext& context) override {
    Row out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = f_(in[i], context);
    return out;
  }
  int arity() const override { return 1; }

 private:
  std::function<Tensor(const Tensor&, const RowContext&)> f_;
};

std::shared_ptr<Node> make(Node::Kind kind, NodePtr input) {
  auto n = std::make_shared<Node>();
  n->kind = kind;
  n->names = input->names;
  n->inputs.push_back(std::move(input));
  return n;
}

int index_of(const std::vector<std::string>& names, const std::string& name, const char* what) {
  const auto it = std::find(names.begin(), names.end(), name);
  UNDERTOW_CHECK(it != names.end(), ValueError, "{}: there is no column '{}'; the columns are {}", what, name,
                 fmt::join(names, ", "));
  return static_cast<int>(it - names.begin());
}

void check_distinct(const std::vector<std::string>& names, const char* what) {
  std::set<std::string> seen;
  for (const std::string& n : names)
    UNDERTOW_CHECK(seen.insert(n).second, ValueError, "{}: column '{}' would occur twice", what, n);
}

void check_workers(int workers) {
  UNDERTOW_CHECK(workers >= 0, ValueError, "num_parallel_workers must not be negative, got {}", workers);
}

/// The sampler that the options stand for; random access.
std::shared_ptr<const Sampler> sampler_of(const SourceOptions& o, Source& source) {
  if (o.sampler) {
    auto bound = o.sampler->bind(source);
    return bound ? bound : o.sampler;
  }
  const bool shuffled = o.shuffle.value_or(true);
  if (shuffled && o.mode != ShuffleMode::kRows) {
    auto files = source.file_rows();
    UNDERTOW_CHECK(!files.empty(), ValueError, "{} reads no rows from files, whose order or rows could be shuffled",
                   source.name());
    const bool order = o.mode == ShuffleMode::kFiles;
    return ChainedSampler(FileOrderSampler(std::move(files), order, !order),
                          o.num_shards > 0 ? DistributedSampler(o.num_shards, o.shard_id, false, o.num_samples)
                                           : SequentialSampler(0, o.num_samples));
  }
  if (o.num_shards > 0) return DistributedSampler(o.num_shards, o.shard_id, shuffled, o.num_samples);
  return shuffled ? RandomSampler(false, o.num_samples) : SequentialSampler(0, o.num_samples);
}

/// Rows per epoch of a node; with `run`, what cannot be known is counted in a run.
std::int64_t size_of(const Node& node, bool run) {
  const std::int64_t known = known_size(node);
  if (known >= 0 || !run) return known;
  if (node.kind == Node::Kind::kRepeat && node.count < 0) return size_of(*node.inputs[0], run);
  {
    const std::lock_guard lock(node.memory->mutex);
    if (node.memory->counted) return *node.memory->counted;
  }
  const bool countable = node.kind != Node::Kind::kSource && node.kind != Node::Kind::kFilter &&
                         node.kind != Node::Kind::kBucket && !node.batch_size;
  if (countable) {
    // Count the unknown inputs, then apply the rules for sizes to a copy of this node with inputs of those sizes.
    const std::int64_t in = size_of(*node.inputs[0], run);
    if (in < 0) return -1;
    switch (node.kind) {
      case Node::Kind::kBatch: return node.drop_remainder ? in / node.count : (in + node.count - 1) / node.count;
      case Node::Kind::kRepeat: return in * node.count;
      case Node::Kind::kTake: return std::min(in, node.count);
      case Node::Kind::kSkip: return std::max<std::int64_t>(in - node.count, 0);
      case Node::Kind::kZip:
      case Node::Kind::kConcat: {
        std::int64_t least = in, sum = 0;
        for (const NodePtr& n : node.inputs) {
          const std::int64_t s = size_of(*n, run);
          if (s < 0) return -1;
          least = std::min(least, s);
          sum += s;
        }
        return node.kind == Node::Kind::kZip ? least : sum;
      }
      default: return in;
    }
  }
  for (const Node* n = &node;; n = n->inputs[0].get()) {
    if (n->kind == Node::Kind::kRepeat && n->count < 0) return -1;
    if (!n->inputs.empty()) continue;
    if (n->source->single_pass()) return -1;
    break;
  }
  const auto plan = make_plan(node, config().seed);
  plan->stream->reset(0);
  Item item;
  std::int64_t n = 0;
  while (plan->stream->next(&item, 1) == 1) ++n;
  const std::lock_guard lock(node.memory->mutex);
  node.memory->counted = n;
  return n;
}

}  // namespace

std::shared_ptr<MapOp> MapFunction::of_rows(std::function<Row(const Row&, const RowContext&)> f) {
  return std::make_shared<RowFunction>(std::move(f));
}
std::shared_ptr<MapOp> MapFunction::of_tensors(std::function<Tensor(const Tensor&, const RowContext&)> f) {
  return std::make_shared<TensorFunction>(std::move(f));
}

Dataset::Dataset(std::shared_ptr<Source> source, std::vector<std::string> names, const SourceOptions& o) {
  UNDERTOW_CHECK(source, ValueError, "a dataset needs a source");
  const std::string what = source->name();
  UNDERTOW_CHECK(!names.empty(), ValueError, "{} needs at least one column name", what);
  check_distinct(names, what.c_str());
  check_workers(o.num_parallel_workers);
  UNDERTOW_CHECK(o.num_samples >= 0, ValueError, "num_samples must not be negative, got {}", o.num_samples);
  UNDERTOW_CHECK((o.num_shards > 0) == (o.shard_id >= 0), ValueError,
                 "num_shards and shard_id go together; got num_shards={} and shard_id={}", o.num_shards, o.shard_id);
  UNDERTOW_CHECK(o.num_shards == 0 || o.shard_id < o.num_shards, ValueError, "shard_id must be in [0, {}), got {}",
                 o.num_shards, o.shard_id);
  UNDERTOW_CHECK(!o.sampler || (!o.shuffle && o.num_samples == 0 && o.num_shards == 0), ValueError,
                 "sampler cannot be combined with shuffle, num_samples, num_shards or shard_id");
  auto n = std::make_shared<Node>();
  n->kind = Node::Kind::kSource;
  n->names = std::move(names);
  n->workers = o.num_parallel_workers;
  n->source = std::move(source);
  if (!n->sequential()) {
    n->sampler = sampler_of(o, *n->source);
    node_ = std::move(n);
    return;
  }
  UNDERTOW_CHECK(!o.sampler, ValueError, "{} has no random access, which a sampler needs", what);
  n->limit = o.num_samples;
  n->num_shards = std::max(o.num_shards, 1);
  n->shard_id = std::max(o.shard_id, 0);
  node_ = std::move(n);
  if (o.shuffle.value_or(false))
    *this = shuffle(std::max<std::int64_t>(config().shuffle_rows, 2), config().shuffle_bytes);
}

Dataset Dataset::batch(std::int64_t batch_size, const BatchOptions& options) const {
  UNDERTOW_CHECK(options.batch_size || batch_size >= 1, ValueError, "batch_size must be at least 1, got {}",
                 batch_size);
  check_workers(options.num_parallel_workers);
  auto n = make(Node::Kind::kBatch, node_);
  n->count = batch_size;
  n->batch_size = options.batch_size;
  n->drop_remainder = options.drop_remainder;
  n->collate = options.collate;
  if (n->collate) n->names = options.output_columns.empty() ? n->names : options.output_columns;
  check_distinct(n->names, "batch");
  n->workers = options.num_parallel_workers;
  return Dataset(std::move(n));
}

Dataset Dataset::padded_batch(std::int64_t batch_size, const PadInfo& padding, const BatchOptions& options) const {
  UNDERTOW_CHECK(!options.collate, ValueError, "padded_batch makes its batches itself; collate cannot be given");
  for (const auto& [column, how] : padding) index_of(node_->names, column, "padded_batch");
  BatchOptions o = options;
  o.collate = pad_collate(node_->names, padding, -1);
  return batch(batch_size, o);
}

Dataset Dataset::bucket_batch_by_length(const std::vector<std::string>& columns, const BucketOptions& o) const {
  const char* what = "bucket_batch_by_length";
  UNDERTOW_CHECK(!o.boundaries.empty(), ValueError, "{}: bucket_boundaries is empty", what);
  for (std::size_t i = 0; i < o.boundaries.size(); ++i)
    UNDERTOW_CHECK(o.boundaries[i] > (i ? o.boundaries[i - 1] : 0), ValueError,
                   "{}: bucket_boundaries must be positive and ascend, got {}", what, fmt::join(o.boundaries, ", "));
  UNDERTOW_CHECK(o.batch_sizes.size() == o.boundaries.size() + 1 &&
                     *std::min_element(o.batch_sizes.begin(), o.batch_sizes.end()) >= 1,
                 ValueError,
                 "{}: bucket_batch_sizes must be {} positive numbers, one more than bucket_boundaries, got {}", what,
                 o.boundaries.size() + 1, fmt::join(o.batch_sizes, ", "));
  UNDERTOW_CHECK(!columns.empty() && (o.length || columns.size() == 1), ValueError,
                 "{}: without element_length_function there must be one column, got {}", what, columns.size());
  auto n = make(Node::Kind::kBucket, node_);
  for (const std::string& c : columns) n->op_inputs.push_back(index_of(node_->names, c, what));
  for (const auto& [column, how] : o.padding) index_of(node_->names, column, what);
  n->length = o.length;
  n->boundaries = o.boundaries;
  n->drop_remainder = o.drop_remainder;
  n->count = o.batch_sizes[0];
  for (std::size_t i = 0; i < o.batch_sizes.size(); ++i) {
    const bool last = i == o.boundaries.size();
    auto bucket = make(Node::Kind::kBatch, node_);
    bucket->count = o.batch_sizes[i];
    bucket->drop_remainder = o.drop_remainder;
    bucket->collate = pad_collate(node_->names, o.padding, o.pad_to_boundary && !last ? o.boundaries[i] - 1 : -1);
    n->buckets.push_back(std::move(bucket));
  }
  return Dataset(std::move(n));
}

Dataset Dataset::cache(std::size_t most_bytes) const {
  auto n = make(Node::Kind::kCache, node_);
  n->cache = std::make_shared<RowCache>(most_bytes);
  return Dataset(std::move(n));
}

Dataset Dataset::map(MapFunction function, const MapOptions& o) const {
  UNDERTOW_CHECK(function.op(), ValueError, "map needs an operation");
  check_workers(o.num_parallel_workers);
  auto n = make(Node::Kind::kMap, node_);
  const auto& in = node_->names;
  n->op = function.op();
  n->workers = o.num_parallel_workers;
  n->callbacks = o.callbacks;
  for (const auto& c : n->callbacks)
    UNDERTOW_CHECK(c && c->step_size() >= 1, ValueError, "map: a callback must have a step_size of at least 1");
  std::vector<std::string> inputs = o.input_columns;
  if (inputs.empty()) {
    const int arity = n->op->arity();
    UNDERTOW_CHECK(arity <= static_cast<int>(in.size()), ValueError, "map: {} takes {} columns, but there are {}: {}",
                   n->op->name(), arity, in.size(), fmt::join(in, ", "));
    inputs.assign(in.begin(), arity < 0 ? in.end() : in.begin() + arity);
  }
  check_distinct(inputs, "map");
  for (const std::string& c : inputs) n->op_inputs.push_back(index_of(in, c, "map"));
  const std::vector<std::string>& outputs = o.output_columns.empty() ? inputs : o.output_columns;
  n->op_outputs = static_cast<int>(outputs.size());
  n->names.clear();
  const bool in_place = outputs.size() == inputs.size();
  if (!in_place)
    for (int k = 0; k < n->op_outputs; ++k) {
      n->names.push_back(outputs[static_cast<std::size_t>(k)]);
      n->place.push_back(k);
    }
  for (int c = 0; c < static_cast<int>(in.size()); ++c) {
    const auto it = std::find(n->op_inputs.begin(), n->op_inputs.end(), c);
    if (it == n->op_inputs.end()) {
      n->names.push_back(in[static_cast<std::size_t>(c)]);
      n->place.push_back(~c);
    } else if (in_place) {
      const auto k = it - n->op_inputs.begin();
      n->names.push_back(outputs[static_cast<std::size_t>(k)]);
      n->place.push_back(static_cast<int>(k));
    }
  }
  check_distinct(n->names, "map");
  return Dataset(std::move(n));
}

Dataset Dataset::shuffle(std::int64_t buffer_size, std::int64_t most_bytes) const {
  UNDERTOW_CHECK(buffer_size >= 2, ValueError, "buffer_size of shuffle must be at least 2, got {}", buffer_size);
  auto n = make(Node::Kind::kShuffle, node_);
  n->count = buffer_size;
  n->most_bytes = most_bytes;
  return Dataset(std::move(n));
}
Dataset Dataset::repeat(std::int64_t count) const {
  UNDERTOW_CHECK(count >= 1 || count == -1, ValueError, "count of repeat must be -1 or at least 1, got {}", count);
  auto n = make(Node::Kind::kRepeat, node_);
  n->count = count;
  return Dataset(std::move(n));
}
Dataset Dataset::take(std::int64_t count) const {
  UNDERTOW_CHECK(count >= 1 || count == -1, ValueError, "count of take must be -1 or at least 1, got {}", count);
  if (count < 0) return *this;
  auto n = make(Node::Kind::kTake, node_);
  n->count = count;
  return Dataset(std::move(n));
}
Dataset Dataset::skip(std::int64_t count) const {
  UNDERTOW_CHECK(count >= 0, ValueError, "count of skip must not be negative, got {}", count);
  if (count == 0) return *this;
  auto n = make(Node::Kind::kSkip, node_);
  n->count = count;
  return Dataset(std::move(n));
}

Dataset Dataset::rename(const std::vector<std::string>& from, const std::vector<std::string>& to) const {
  UNDERTOW_CHECK(from.size() == to.size(), ValueError, "rename: {} columns are to get {} names", from.size(),
                 to.size());
  auto n = make(Node::Kind::kProject, node_);
  for (int c = 0; c < static_cast<int>(n->names.size()); ++c) n->place.push_back(~c);
  for (std::size_t i = 0; i < from.size(); ++i)
    n->names[static_cast<std::size_t>(index_of(node_->names, from[i], "rename"))] = to[i];
  check_distinct(n->names, "rename");
  return Dataset(std::move(n));
}
Dataset Dataset::project(const std::vector<std::string>& columns) const {
  UNDERTOW_CHECK(!columns.empty(), ValueError, "project needs at least one column");
  auto n = make(Node::Kind::kProject, node_);
  for (const std::string& c : columns) n->place.push_back(~index_of(node_->names, c, "project"));
  n->names = columns;
  check_distinct(n->names, "project");
  return Dataset(std::move(n));
}

Dataset Dataset::zip(const std::vector<Dataset>& others) const {
  auto n = make(Node::Kind::kZip, node_);
  for (const Dataset& d : others) {
    n->inputs.push_back(d.node_);
    n->names.insert(n->names.end(), d.node_->names.begin(), d.node_->names.end());
  }
  check_distinct(n->names, "zip");
  return Dataset(std::move(n));
}
Dataset Dataset::concat(const Dataset& other) const {
  UNDERTOW_CHECK(node_->names == other.node_->names, ValueError, "concat: the columns differ: {} and {}",
                 fmt::join(node_->names, ", "), fmt::join(other.node_->names, ", "));
  auto n = make(Node::Kind::kConcat, node_);
  n->inputs.push_back(other.node_);
  return Dataset(std::move(n));
}
Dataset Dataset::filter(std::function<bool(const Row&)> predicate, const std::vector<std::string>& columns) const {
  UNDERTOW_CHECK(predicate, ValueError, "filter needs a predicate");
  auto n = make(Node::Kind::kFilter, node_);
  n->predicate = std::move(predicate);
  for (const std::string& c : columns.empty() ? node_->names : columns)
    n->op_inputs.push_back(index_of(node_->names, c, "filter"));
  return Dataset(std::move(n));
}

Dataset Dataset::sync_wait(const std::string& condition_name, std::int64_t num_batch,
                           std::function<void(const void*)> callback) const {
  UNDERTOW_CHECK(!condition_name.empty(), ValueError, "sync_wait: condition_name is empty");
  UNDERTOW_CHECK(num_batch >= 1, ValueError, "sync_wait: num_batch must be at least 1, got {}", num_batch);
  auto n = make(Node::Kind::kSync, node_);
  n->sync = std::make_shared<SyncPoint>(condition_name, num_batch, std::move(callback));
  return Dataset(std::move(n));
}

namespace {

SyncPoint* find_sync(const Node& node, const std::string& name) {
  if (node.sync && node.sync->name() == name) return node.sync.get();
  for (const NodePtr& input : node.inputs)
    if (SyncPoint* found = find_sync(*input, name)) return found;
  return nullptr;
}

}  // namespace

void Dataset::sync_update(const std::string& condition_name, std::int64_t num_batch, const void* data) const {
  UNDERTOW_CHECK(num_batch >= 0, ValueError, "sync_update: num_batch must not be negative, got {}", num_batch);
  SyncPoint* point = find_sync(*node_, condition_name);
  UNDERTOW_CHECK(point, ValueError, "sync_update: there is no sync_wait('{}') in this dataset", condition_name);
  point->release(num_batch, data);
}

Position Dataset::state() const {
  const std::lock_guard lock(node_->memory->mutex);
  return node_->memory->progress ? node_->memory->progress->position() : Position{config().seed, 0, 0};
}

void Dataset::load_state(const Position& position) const {
  UNDERTOW_CHECK(position.epoch >= 0 && position.batch >= 0, ValueError,
                 "load_state: epoch and batch must not be negative, got {} and {}", position.epoch, position.batch);
  const std::int64_t size = known_size();
  UNDERTOW_CHECK(size < 0 || position.batch < std::max<std::int64_t>(size, 1), ValueError,
                 "load_state: batch {} of epoch {}, but an epoch has {} batches", position.batch, position.epoch, size);
  const std::lock_guard lock(node_->memory->mutex);
  node_->memory->resume = position;
  node_->memory->progress = std::make_shared<Progress>(position.seed, position);
}

Profile Dataset::profile(std::int64_t batches) const {
  UNDERTOW_CHECK(batches >= 1, ValueError, "profile: batches must be at least 1, got {}", batches);
  NodeMemory& memory = *node_->memory;
  std::shared_ptr<Progress> progress;
  std::optional<Position> resume;
  {
    const std::lock_guard lock(memory.mutex);
    progress = memory.progress;
    resume = std::exchange(memory.resume, std::nullopt);
  }
  Profile out;
  {
    RowIterator rows(*this, 1);
    for (std::int64_t i = 0; i < batches && rows.next(); ++i) {
    }
    out = rows.profile();
  }
  const std::lock_guard lock(memory.mutex);  // as if nothing had run
  memory.progress = std::move(progress);
  memory.resume = resume;
  return out;
}

std::optional<Profile> Dataset::last_profile() const {
  const std::lock_guard lock(node_->memory->mutex);
  return node_->memory->profile;
}

std::vector<Dataset> Dataset::split(const std::vector<std::int64_t>& sizes, bool randomize) const {
  const std::int64_t rows = get_dataset_size();
  UNDERTOW_CHECK(rows >= 0, ValueError, "split needs a dataset whose size is known");
  const std::int64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  UNDERTOW_CHECK(!sizes.empty() && sum <= rows && *std::min_element(sizes.begin(), sizes.end()) >= 1, ValueError,
                 "split: the sizes {} must be positive and sum to at most the {} rows", fmt::join(sizes, ", "), rows);
  const std::int64_t buffer = std::max<std::int64_t>(rows, 2);
  const Dataset fixed(make(Node::Kind::kFreeze, randomize ? shuffle(buffer).node_ : node_));
  std::vector<Dataset> parts;
  std::int64_t at = 0;
  for (const std::int64_t s : sizes) {
    const Dataset part = fixed.skip(at).take(s);
    parts.push_back(randomize ? part.shuffle(buffer) : part);
    at += s;
  }
  return parts;
}

std::int64_t Dataset::get_dataset_size() const { return size_of(*node_, true); }

}  // namespace undertow::data
