// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/node.h"

#include <algorithm>
#include <cstring>

#include "undertow/base/check.h"

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

/// The first `n` elements as they enter a later node, or fewer where there are no more. For describe() only: order
/// operations are passed over, since they do not change shapes.
std::vector<Row> first_elements(const Node& node, std::int64_t n) {
  std::vector<Row> rows;
  switch (node.kind) {
    case Node::Kind::kSource:
      if (!node.sequential()) {
        for (std::int64_t i = 0; i < std::min(n, node.source->size()); ++i) {
          Row row;
          node.source->fetch(i, row);
          check_columns(node, row);
          rows.push_back(std::move(row));
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
      for (Row& r : first_elements(*node.inputs[0], n))
        rows.push_back(apply(node, std::move(r), {.seed = config().seed, .sample = i++}));
      break;
    }
    case Node::Kind::kBatch: {
      const auto parts = first_elements(*node.inputs[0], n * node.count);
      for (std::size_t at = 0; at < parts.size() && static_cast<std::int64_t>(rows.size()) < n;) {
        const std::size_t k = std::min(parts.size() - at, static_cast<std::size_t>(node.count));
        if (node.drop_remainder && static_cast<std::int64_t>(k) < node.count && !rows.empty()) break;
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
  for (std::size_t c = 0; c < row.size(); ++c) specs.push_back({node.names[c], row[c].dtype(), row[c].shape()});
  return specs;
}

std::vector<ColumnSpec> find_specs(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kBatch:
      if (!node.collate) {
        auto specs = describe(*node.inputs[0]);
        const std::int64_t rows = known_size(*node.inputs[0]);
        for (ColumnSpec& s : specs) {
          Shape shape{rows < 0 ? node.count : std::min(rows, node.count)};
          for (const std::int64_t d : s.shape) shape.push_back(d);
          s.shape = shape;
        }
        return specs;
      }
      [[fallthrough]];
    case Node::Kind::kSource:
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
    case Kind::kBatch: return in < 0 ? -1 : node.drop_remainder ? in / node.count : (in + node.count - 1) / node.count;
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

Row apply(const Node& map, Row row, const RowContext& context) {
  Row made;
  if (map.op) {
    if (map.op_inputs.size() == row.size() && std::is_sorted(map.op_inputs.begin(), map.op_inputs.end())) {
      made = (*map.op)(row, context);
    } else {
      Row in(map.op_inputs.size());
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = row[static_cast<std::size_t>(map.op_inputs[i])];
      made = (*map.op)(in, context);
    }
    UNDERTOW_CHECK(static_cast<int>(made.size()) == map.op_outputs, DataError,
                   "{} gave {} columns where {} are expected (output columns {}); name them in output_columns",
                   map.op->name(), made.size(), map.op_outputs, fmt::join(map.names, ", "));
    for (std::size_t i = 0; i < made.size(); ++i)
      UNDERTOW_CHECK(made[i].defined(), DataError, "{} gave an undefined Tensor as its output {}", map.op->name(), i);
  }
  Row out(map.place.size());
  for (std::size_t k = 0; k < out.size(); ++k) {
    const int p = map.place[k];
    out[k] = p >= 0 ? std::move(made[static_cast<std::size_t>(p)]) : std::move(row[static_cast<std::size_t>(~p)]);
  }
  return out;
}

void check_columns(const Node& source, const Row& row) {
  UNDERTOW_CHECK(row.size() == source.names.size(), DataError, "{} gave {} columns, but {} column names were given: {}",
                 source.source->name(), row.size(), source.names.size(), fmt::join(source.names, ", "));
  for (std::size_t c = 0; c < row.size(); ++c)
    UNDERTOW_CHECK(row[c].defined(), DataError, "{} gave an undefined Tensor for column '{}'", source.source->name(),
                   source.names[c]);
}

Row stack(const Node& batch, std::span<const Row> rows) {
  Row out(batch.names.size());
  for (std::size_t c = 0; c < out.size(); ++c) {
    const Tensor& first = rows[0][c];
    Shape shape{static_cast<std::int64_t>(rows.size())};
    for (const std::int64_t d : first.shape()) shape.push_back(d);
    out[c] = Tensor(first.dtype(), shape);
    auto* p = static_cast<std::byte*>(out[c].data());
    for (std::size_t r = 0; r < rows.size(); ++r, p += first.nbytes()) {
      const Tensor& t = rows[r][c];
      if (t.shape() != first.shape() || t.dtype() != first.dtype())
        throw_ragged(batch.names[c], static_cast<std::int64_t>(r), first.shape(), first.dtype(), t.shape(), t.dtype());
      if (first.nbytes()) std::memcpy(p, t.data(), first.nbytes());
    }
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
std::int64_t Dataset::get_batch_size() const {
  for (const Node* n = node_.get(); n; n = n->inputs.empty() ? nullptr : n->inputs[0].get())
    if (n->kind == Node::Kind::kBatch) return n->count;
  return 1;
}
std::int64_t Dataset::get_repeat_count() const {
  for (const Node* n = node_.get(); n; n = n->inputs.empty() ? nullptr : n->inputs[0].get())
    if (n->kind == Node::Kind::kRepeat) return n->count;
  return 1;
}

}  // namespace undertow::data
