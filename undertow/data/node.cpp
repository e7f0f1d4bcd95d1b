// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/node.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "undertow/base/check.h"
#include "undertow/base/log.h"
#include "undertow/data/strings.h"

namespace undertow::data {
namespace {

/// Replays what describe() pulled, then goes on with the same pass.
class ReplayCursor : public Cursor {
 public:
  explicit ReplayCursor(std::unique_ptr<Primed> primed) : primed_(std::move(primed)) {}
  bool next(Row& out) override {
    if (at_ < primed_->rows.size()) {
      out = std::move(primed_->rows[at_++]);
      return true;
    }
    return !primed_->ended && primed_->cursor->next(out);
  }

 private:
  std::unique_ptr<Primed> primed_;
  std::size_t at_ = 0;
};

std::unique_ptr<Cursor> open_counted(const Node& node, std::int64_t epoch) {
  NodeMemory& m = *node.memory;  // locked by the caller
  UNDERTOW_CHECK(!node.source->single_pass() || m.passes == 0, DataError,
                 "{} gives its rows only once, and they have been used up: it cannot start again for epoch {}. Pass a "
                 "function that makes a new generator, or a source with random access",
                 node.source->name(), epoch + 1);
  ++m.passes;
  auto cursor = node.source->open(epoch);
  UNDERTOW_ASSERT(cursor);
  return cursor;
}

std::vector<Row> first_elements(const Node& node, std::int64_t n);

/// A batch of the bucket that the first row goes to, of that row alone.
std::vector<Row> first_bucket(const Node& node) {
  const auto rows = first_elements(*node.inputs[0], 1);
  if (rows.empty()) return {};
  const Node& bucket = *node.buckets[bucket_of(node, rows[0])];
  return {(*bucket.collate)(rows, {.seed = config().seed})};
}

/// Where row `i` that describe() asks for comes from.
std::string place_of(const Node& node, std::int64_t i) {
  const Node* n = &node;
  while (!n->source && n->inputs.size() == 1) {
    if (n->kind == Node::Kind::kBatch || n->kind == Node::Kind::kBucket)
      return fmt::format("at batch {}, which was made to learn shapes and dtypes", i);
    n = n->inputs[0].get();
  }
  if (!n->source) return fmt::format("at row {}, which was made to learn shapes and dtypes", i);
  std::string from = n->sequential() ? std::string() : n->source->origin(i);
  if (!from.empty()) from = " (" + from + ")";
  return fmt::format("at row {}{} of {}, which was made to learn shapes and dtypes", i, from, n->source->name());
}

/// The first `n` elements as they enter a later node, or fewer where there are no more. For describe() only: order
/// operations are passed over, since they do not change shapes.
std::vector<Row> first_elements(const Node& node, std::int64_t n) {
  std::vector<Row> rows;
  switch (node.kind) {
    case Node::Kind::kSource:
      if (!node.sequential()) {
        for (std::int64_t i = 0; i < std::min(n, node.source->size()); ++i) {
          LazyRow row(Row(), false);
          try {
            node.source->fetch_lazy({.seed = config().seed, .sample = i}, row);
            check_columns(node, row.finish());
          } catch (const Error& e) {
            e.rethrow_with(place_of(node, i));
          }
          rows.push_back(std::move(row.finish()));
        }
      } else {
        const std::lock_guard lock(node.memory->mutex);
        auto& primed = node.memory->primed;
        if (!primed) {
          primed = std::make_unique<Primed>();
          primed->cursor = open_counted(node, 0);
        }
        while (static_cast<std::int64_t>(primed->rows.size()) < n && !primed->ended) {
          Row row;
          try {
            primed->ended = !primed->cursor->next(row);
          } catch (...) {
            primed.reset();  // the next attempt starts a pass of its own
            throw;
          }
          if (!primed->ended) primed->rows.push_back(std::move(row));
        }
        for (std::int64_t i = 0; i < std::min<std::int64_t>(n, static_cast<std::int64_t>(primed->rows.size())); ++i) {
          check_columns(node, primed->rows[static_cast<std::size_t>(i)]);
          rows.push_back(primed->rows[static_cast<std::size_t>(i)]);
        }
      }
      break;
    case Node::Kind::kMap:
    case Node::Kind::kProject: {
      std::int64_t i = 0;
      for (Row& r : first_elements(*node.inputs[0], n)) {
        LazyRow row(std::move(r), config().fuse);
        try {
          apply(node, row, {.seed = config().seed, .sample = i});
          rows.push_back(std::move(row.finish()));
        } catch (const Error& e) {
          e.rethrow_with(place_of(node, i));
        }
        ++i;
      }
      break;
    }
    case Node::Kind::kBucket: return first_bucket(node);
    case Node::Kind::kBatch: {
      const auto parts = first_elements(*node.inputs[0], n * batch_size_of(node, 0, 0));
      for (std::size_t at = 0; at < parts.size() && static_cast<std::int64_t>(rows.size()) < n;) {
        const std::size_t k =
            std::min(parts.size() - at,
                     static_cast<std::size_t>(batch_size_of(node, static_cast<std::int64_t>(rows.size()), 0)));
        if (node.drop_remainder &&
            static_cast<std::int64_t>(k) < batch_size_of(node, static_cast<std::int64_t>(rows.size()), 0) &&
            !rows.empty())
          break;
        const std::span<const Row> part(parts.data() + at, k);
        rows.push_back(node.collate ? (*node.collate)(part, {.seed = config().seed,
                                                             .sample = static_cast<std::int64_t>(rows.size())})
                                    : stack(node, part));
        at += k;
      }
      break;
    }
    case Node::Kind::kZip:
      for (const NodePtr& input : node.inputs) {
        auto part = first_elements(*input, n);
        if (&input == &node.inputs[0]) rows.resize(part.size());
        rows.resize(std::min(rows.size(), part.size()));
        for (std::size_t i = 0; i < rows.size(); ++i)
          for (Tensor& t : part[i]) rows[i].push_back(std::move(t));
      }
      break;
    default: return first_elements(*node.inputs[0], n);
  }
  return rows;
}

std::vector<ColumnSpec> specs_of(const Node& node, const Row& row) {
  std::vector<ColumnSpec> specs;
  for (std::size_t c = 0; c < row.size(); ++c)
    specs.push_back({node.names[c], row[c].dtype(), row[c].shape(), is_text(row[c])});
  return specs;
}

std::vector<ColumnSpec> find_specs(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kBatch:
      if (!node.collate) {
        auto specs = describe(*node.inputs[0]);
        const std::int64_t rows = known_size(*node.inputs[0]);
        for (ColumnSpec& s : specs) {
          const std::int64_t size = batch_size_of(node, 0, 0);
          Shape shape{rows < 0 ? size : std::min(rows, size)};
          for (const std::int64_t d : s.shape) shape.push_back(d);
          s.shape = shape;
        }
        return specs;
      }
      [[fallthrough]];
    case Node::Kind::kSource:
    case Node::Kind::kBucket:
    case Node::Kind::kMap: {
      const auto rows = first_elements(node, 1);
      UNDERTOW_CHECK(!rows.empty(), DataError, "{}", why_empty(node));
      return specs_of(node, rows[0]);
    }
    case Node::Kind::kProject: {
      auto in = describe(*node.inputs[0]);
      std::vector<ColumnSpec> out;
      for (std::size_t c = 0; c < node.place.size(); ++c) {
        out.push_back(in[static_cast<std::size_t>(~node.place[c])]);
        out.back().name = node.names[c];
      }
      return out;
    }
    case Node::Kind::kZip: {
      std::vector<ColumnSpec> out;
      for (const NodePtr& input : node.inputs)
        for (ColumnSpec& s : describe(*input)) out.push_back(std::move(s));
      return out;
    }
    default:
      for (const NodePtr& input : node.inputs)  // concat: one of them may be empty
        if (known_size(*input) != 0) return describe(*input);
      return describe(*node.inputs[0]);
  }
}

}  // namespace

std::unique_ptr<Cursor> open_pass(const Node& node, std::int64_t epoch) {
  const std::lock_guard lock(node.memory->mutex);
  auto primed = std::move(node.memory->primed);
  // A pass begun for epoch 0 stands for that epoch only, unless the source has no other.
  if (primed && (epoch == 0 || node.source->single_pass())) return std::make_unique<ReplayCursor>(std::move(primed));
  return open_counted(node, epoch);
}

std::int64_t known_size(const Node& node) {
  using Kind = Node::Kind;
  const std::int64_t in = node.inputs.empty() ? 0 : known_size(*node.inputs[0]);
  switch (node.kind) {
    case Kind::kSource: return node.sequential() ? -1 : node.sampler->size(node.source->size());
    case Kind::kBucket: return in == 0 ? 0 : -1;
    case Kind::kBatch:
      if (node.batch_size) return in == 0 ? 0 : -1;
      return in < 0 ? -1 : node.drop_remainder ? in / node.count : (in + node.count - 1) / node.count;
    case Kind::kRepeat: return in < 0 || node.count < 0 ? in : in * node.count;
    case Kind::kTake: return in < 0 ? -1 : std::min(in, node.count);
    case Kind::kSkip: return in < 0 ? -1 : std::max<std::int64_t>(in - node.count, 0);
    case Kind::kFilter: return in == 0 ? 0 : -1;
    case Kind::kZip: {
      std::int64_t least = in;
      for (const NodePtr& n : node.inputs) least = std::min(least, known_size(*n));  // -1 wins
      return least;
    }
    case Kind::kConcat: {
      const std::int64_t second = known_size(*node.inputs[1]);
      return in < 0 || second < 0 ? -1 : in + second;
    }
    default: return in;
  }
}

std::string why_empty(const Node& node) {
  using Kind = Node::Kind;
  if (node.kind == Kind::kSource) return fmt::format("0 batches: {} has 0 rows", node.source->name());
  const Node& in = *node.inputs[0];
  const std::int64_t rows = known_size(in);
  if (rows == 0) return why_empty(in);
  const std::string given = rows < 0 ? std::string("the rows there are") : fmt::format("the {} rows", rows);
  switch (node.kind) {
    case Kind::kBatch:
      if (!node.drop_remainder) return why_empty(in);
      return fmt::format(
          "0 batches: batch size {} with drop_remainder is more than {}. Use a smaller batch_size, or "
          "drop_remainder=False",
          node.count, given);
    case Kind::kSkip: return fmt::format("0 batches: skip({}) leaves nothing of {}", node.count, given);
    case Kind::kFilter: return fmt::format("0 batches: filter dropped all of {}", given);
    case Kind::kZip:
      for (const NodePtr& n : node.inputs)
        if (known_size(*n) == 0) return why_empty(*n);
      return "0 batches: one of the zipped datasets has 0 rows";
    default: return why_empty(in);
  }
}

std::vector<ColumnSpec> describe(const Node& node) {
  {
    const std::lock_guard lock(node.memory->mutex);
    if (node.memory->specs) return *node.memory->specs;
  }
  UNDERTOW_CHECK(known_size(node) != 0, DataError, "{}", why_empty(node));
  auto specs = find_specs(node);
  const std::lock_guard lock(node.memory->mutex);
  node.memory->specs = specs;
  return specs;
}

std::int64_t batch_size_of(const Node& node, std::int64_t batch, std::int64_t epoch) {
  if (!node.batch_size) return node.count;
  const std::int64_t size = node.batch_size(batch, epoch);
  UNDERTOW_CHECK(size >= 1, ValueError, "batch: the function for batch_size gave {} for batch {} of epoch {}", size,
                 batch, epoch);
  return size;
}

std::size_t bucket_of(const Node& node, const Row& row) {
  Row in(node.op_inputs.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = row[static_cast<std::size_t>(node.op_inputs[i])];
  std::int64_t length;
  if (node.length) {
    length = node.length(in);
  } else {
    UNDERTOW_CHECK(in[0].ndim() >= 1, DataError, "bucket_batch_by_length: column '{}' is a number, which has no length",
                   node.inputs[0]->names[static_cast<std::size_t>(node.op_inputs[0])]);
    length = in[0].shape(0);
  }
  UNDERTOW_CHECK(length >= 0, DataError, "bucket_batch_by_length: the length of a row is {}", length);
  return static_cast<std::size_t>(std::upper_bound(node.boundaries.begin(), node.boundaries.end(), length) -
                                  node.boundaries.begin());
}

bool RowCache::find(const void* source, std::int64_t row, Row& out) const {
  const std::lock_guard lock(mutex_);
  const auto it = rows_.find({source, row});
  if (it == rows_.end()) return false;
  out = it->second;
  return true;
}

void RowCache::keep(const void* source, std::int64_t row, const Row& made) {
  std::size_t bytes = 0;
  for (const Tensor& t : made) bytes += t.nbytes();
  const std::lock_guard lock(mutex_);
  if (most_ > 0 && bytes_ + bytes > most_) {
    if (!std::exchange(noted_, true))
      log_warning(
          fmt::format("cache: {} rows fill its {} bytes; the other rows are made anew each time", rows_.size(), most_));
    return;
  }
  if (rows_.emplace(std::pair(source, row), made).second) bytes_ += bytes;
}

void apply(const Node& map, LazyRow& row, const RowContext& context) {
  LazyRow made({}, row.fuse());
  if (map.op) {
    LazyRow in(Row(map.op_inputs.size()), row.fuse());
    const bool whole = map.op_inputs.size() == row.size() && std::ranges::is_sorted(map.op_inputs);
    if (whole) in = std::move(row);
    else
      for (std::size_t i = 0; i < in.size(); ++i) in.move(i, row, static_cast<std::size_t>(map.op_inputs[i]));
    extend(*map.op, in, context);
    made = std::move(in);
    UNDERTOW_CHECK(static_cast<int>(made.size()) == map.op_outputs, DataError,
                   "{} gave {} columns where {} are expected (output columns {}); name them in output_columns",
                   map.op->name(), made.size(), map.op_outputs, fmt::join(map.names, ", "));
    for (std::size_t i = 0; i < made.size(); ++i)
      UNDERTOW_CHECK(made.has(i), DataError, "{} gave an undefined Tensor as its output {}", map.op->name(), i);
  }
  LazyRow out(Row(map.place.size()), row.fuse());
  for (std::size_t k = 0; k < out.size(); ++k) {
    const int p = map.place[k];
    if (p >= 0) out.move(k, made, static_cast<std::size_t>(p));
    else out.move(k, row, static_cast<std::size_t>(~p));
  }
  row = std::move(out);
}

namespace {

template <typename Has>
void check_columns(const Node& source, std::size_t columns, Has has) {
  UNDERTOW_CHECK(columns == source.names.size(), DataError, "{} gave {} columns, but {} column names were given: {}",
                 source.source->name(), columns, source.names.size(), fmt::join(source.names, ", "));
  for (std::size_t c = 0; c < columns; ++c)
    UNDERTOW_CHECK(has(c), DataError, "{} gave an undefined Tensor for column '{}'", source.source->name(),
                   source.names[c]);
}

}  // namespace

void check_columns(const Node& source, const Row& row) {
  check_columns(source, row.size(), [&](std::size_t c) { return row[c].defined(); });
}
void check_columns(const Node& source, const LazyRow& row) {
  check_columns(source, row.size(), [&](std::size_t c) { return row.has(c); });
}

Tensor stack_column(const std::string& column, std::span<const Tensor> rows) {
  const Tensor& first = rows[0];
  const bool text = is_text(first);
  const Shape extents = text ? text_shape(first) : first.shape();
  std::int64_t width = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Tensor& t = rows[r];
    if (t.dtype() != first.dtype() || is_text(t) != text || (text ? text_shape(t) : t.shape()) != extents)
      throw_ragged(column, static_cast<std::int64_t>(r), first.shape(), first.dtype(), t.shape(), t.dtype());
    if (text) width = std::max(width, t.shape().back());
  }
  Shape shape{static_cast<std::int64_t>(rows.size())};
  for (const std::int64_t d : extents) shape.push_back(d);
  const Tensor out = text ? text_tensor(first.dtype(), shape, width) : Tensor(first.dtype(), shape);
  auto* p = static_cast<std::byte*>(out.data());
  for (const Tensor& row : rows) {
    const Tensor t = text ? widen(row, width) : row;
    if (t.nbytes()) std::memcpy(p, t.data(), t.nbytes());
    p += t.nbytes();
  }
  return out;
}

Row stack(const Node& batch, std::span<const Row> rows) {
  Row out(batch.names.size());
  std::vector<Tensor> column(rows.size());
  for (std::size_t c = 0; c < out.size(); ++c) {
    for (std::size_t r = 0; r < rows.size(); ++r) column[r] = rows[r][c];
    out[c] = stack_column(batch.names[c], column);
  }
  return out;
}

void throw_ragged(const std::string& column, std::int64_t row, const Shape& first, DType first_dtype,
                  const Shape& other, DType other_dtype) {
  throw DataError(
      fmt::format("rows of one batch differ in column '{}': row 0 of the batch is {} of shape {}, row {} is {} of "
                  "shape {}. Make them "
                  "equal with map, or pad them when batching",
                  column, name_of(first_dtype), first.str(), row, name_of(other_dtype), other.str()));
}

std::int64_t Dataset::known_size() const { return data::known_size(*node_); }
std::vector<ColumnSpec> Dataset::describe() const { return data::describe(*node_); }
std::vector<Shape> Dataset::output_shapes() const {
  std::vector<Shape> out;
  for (const ColumnSpec& s : describe()) out.push_back(s.shape);
  return out;
}
std::vector<DType> Dataset::output_types() const {
  std::vector<DType> out;
  for (const ColumnSpec& s : describe()) out.push_back(s.dtype);
  return out;
}
std::vector<std::string> Dataset::get_col_names() const { return node_->names; }
std::vector<std::pair<std::string, std::int64_t>> Dataset::classes() const {
  const Node* n = node_.get();
  while (!n->inputs.empty()) n = n->inputs[0].get();
  return n->source->classes();
}
std::int64_t Dataset::get_batch_size() const {
  for (const Node* n = node_.get(); n; n = n->inputs.empty() ? nullptr : n->inputs[0].get())
    if (n->kind == Node::Kind::kBatch || n->kind == Node::Kind::kBucket) return batch_size_of(*n, 0, 0);
  return 1;
}
std::int64_t Dataset::get_repeat_count() const {
  for (const Node* n = node_.get(); n; n = n->inputs.empty() ? nullptr : n->inputs[0].get())
    if (n->kind == Node::Kind::kRepeat) return n->count;
  return 1;
}

}  // namespace undertow::data
