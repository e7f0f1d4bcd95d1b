// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/evaluate.h"

#include <algorithm>
#include <cstring>

#include "undertow/base/check.h"
#include "undertow/data/strings.h"

namespace undertow::data {
namespace {

/// Holds a gate, where there is one.
class Pass {
 public:
  Pass(Gate* gate, Stopwatch& watch) : gate_(gate) {
    if (!gate_) return;
    gate_->lock();
    watch.restart();
  }
  ~Pass() {
    if (gate_) gate_->unlock();
  }
  Pass(const Pass&) = delete;

 private:
  Gate* gate_;
};

const Leaf& leaf_of(const Plan& plan, const Item& item) { return plan.leaves[static_cast<std::size_t>(item.leaf)]; }

void check_stop(const Plan& plan) {
  if (plan.stop && plan.stop->load(std::memory_order_relaxed)) throw Stopped();
}

RowContext context_of(const Plan& plan, const Item& item, std::uint32_t op) {
  return {plan.seed, item.epoch, item.row, op, plan.stop};
}

void fetch(const Leaf& leaf, const RowContext& at, LazyRow& row, Stopwatch& watch) {
  {
    const Pass pass(leaf.gate, watch);
    leaf.node->source->fetch_lazy(at, row);
    if (!row.fuse()) row.finish();
  }
  check_columns(*leaf.node, row);
  if (leaf.select.empty()) return;
  LazyRow kept(Row(leaf.select.size()), row.fuse());
  for (std::size_t k = 0; k < kept.size(); ++k) kept.move(k, row, static_cast<std::size_t>(leaf.select[k]));
  row = std::move(kept);
}

std::string place_of(const Leaf& leaf, const Item& item) {
  const Node* node = leaf.node;
  const bool batch = leaf.kind == Leaf::Kind::kBatch;
  const std::string of = node->source ? fmt::format(" of {}", node->source->name()) : std::string();
  std::string from = leaf.kind == Leaf::Kind::kSource ? node->source->origin(item.row) : std::string();
  if (!from.empty()) from = " (" + from + ")";
  return fmt::format("at {} {}{} of epoch {}{}", batch ? "batch" : "row", item.row, from, item.epoch + 1, of);
}

bool is_text(const LazyRow& row, std::size_t c) { return !row.pending(c) && data::is_text(row.made(c)); }

/// Whether a row's column is what `spec` announces; `lead` 1: behind the batch's dimension.
bool fits(const LazyRow& row, std::size_t c, const ColumnSpec& spec, int lead) {
  const Shape& shape = row.shape(c);
  if (row.dtype(c) != spec.dtype || shape.rank() + lead != spec.shape.rank() || is_text(row, c) != spec.text)
    return false;
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] != spec.shape[d + lead]) return false;
  return true;
}

Shape row_shape(const ColumnSpec& spec) { return Shape(std::span(spec.shape.begin() + 1, spec.shape.end())); }

/// `specs` changed to what `row` has; `lead` 1: as rows of a batch of `n`.
std::span<const ColumnSpec> respecify(const LazyRow& row, std::span<const ColumnSpec> specs, int lead, std::size_t n,
                                      Scratch& scratch) {
  scratch.specs.assign(specs.begin(), specs.end());
  for (std::size_t c = 0; c < row.size(); ++c) {
    Shape shape;
    if (lead) shape.push_back(static_cast<std::int64_t>(n));
    const Shape own = row.shape(c);
    for (const std::int64_t d : own) shape.push_back(d);
    scratch.specs[c].dtype = row.dtype(c);
    scratch.specs[c].shape = shape;
    scratch.specs[c].text = is_text(row, c);
  }
  return scratch.specs;
}

/// True where the whole batch was copied by its source.
bool gather(const Plan& plan, std::span<const Item> items, const BatchTarget& target, Scratch& scratch) {
  const std::int32_t first = items[0].leaf;
  const Leaf& leaf = plan.leaves[static_cast<std::size_t>(first)];
  if (!leaf.bulk) return false;
  scratch.indices.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].leaf != first) return false;
    scratch.indices[i] = items[i].row;
  }
  std::span<std::byte* const> columns = target.columns;
  if (!leaf.select.empty()) {
    scratch.columns.assign(leaf.node->names.size(), nullptr);
    for (std::size_t k = 0; k < leaf.select.size(); ++k)
      scratch.columns[static_cast<std::size_t>(leaf.select[k])] = target.columns[k];
    columns = scratch.columns;
  }
  Stopwatch watch;
  const Pass pass(leaf.node->source->thread_safe() ? nullptr : leaf.gate, watch);
  if (!leaf.node->source->gather(scratch.indices, columns)) return false;
  watch.lap(leaf.clock, static_cast<std::int64_t>(items.size()));
  return true;
}

/// Copies or makes the columns, behind the `before` rows of a batch.
/// What was put off so far is the time of the stage that put it off, the copying is `batch`'s.
void write_columns(const Plan& plan, const Item& item, LazyRow& row, const BatchTarget& target, std::size_t before,
                   StageClock* batch) {
  const Leaf& leaf = leaf_of(plan, item);
  StageClock* maker = nullptr;
  for (std::size_t c = 0; c < row.size() && !maker; ++c)
    if (row.pending(c)) {
      maker = leaf.clock;
      for (const Step& s : leaf.steps)
        if (s.clock) maker = s.clock;
    }
  Stopwatch watch;
  try {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::size_t bytes = static_cast<std::size_t>(row.shape(c).numel()) * size_of(row.dtype(c));
      row.write(c, target.columns[c] + before * bytes);
    }
  } catch (const Error& e) {
    e.rethrow_with(place_of(leaf, item));
  }
  if (maker) watch.lap(maker, 0);
  else watch.lap(batch, 1);
}

void write_rows(const Plan& plan, std::span<Item> items, const Leaf& leaf, BatchTarget target,
                std::span<const ColumnSpec> specs, Resizer& resizer, Scratch& scratch) {
  LazyRow& row = scratch.row;
  const Node& batch = *leaf.node;
  for (std::size_t i = 0; i < items.size(); ++i) {
    check_stop(plan);
    evaluate(plan, items[i], scratch, row);
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (fits(row, c, specs[c], 1)) continue;
      if (i > 0)
        throw_ragged(batch.names[c], static_cast<std::int64_t>(i), row_shape(specs[c]), specs[c].dtype, row.shape(c),
                     row.dtype(c));
      specs = respecify(row, specs, 1, items.size(), scratch);
      target = resizer.resize(specs);
      break;
    }
    write_columns(plan, items[i], row, target, i, leaf.clock);
  }
  row.refill(plan.fuse);  // holds nothing of the source beyond the batch
}

}  // namespace

void evaluate(const Plan& plan, Item& item, Scratch& scratch, LazyRow& row) {
  const Leaf& leaf = leaf_of(plan, item);
  Row& made = row.refill(plan.fuse);
  std::size_t first_step = 0;  // of those that are to run
  bool cached = false;
  for (std::size_t i = leaf.kind == Leaf::Kind::kSource ? leaf.steps.size() : 0; i-- > 0 && !cached;)
    if (const auto& cache = leaf.steps[i].node->cache; cache && cache->find(leaf.node, item.row, made)) {
      cached = true;
      first_step = i + 1;
    }
  switch (leaf.kind) {
    case Leaf::Kind::kSource: break;
    case Leaf::Kind::kValue: made = std::move(item.payload->row); break;
    case Leaf::Kind::kZip:
      for (Item& part : item.payload->items)
        for (Tensor& t : evaluate(plan, part, scratch)) made.push_back(std::move(t));
      break;
    case Leaf::Kind::kBatch: {
      std::vector<Row> rows;
      rows.reserve(item.payload->items.size());
      for (Item& part : item.payload->items) {
        check_stop(plan);
        rows.push_back(evaluate(plan, part, scratch));
      }
      Stopwatch watch;
      const auto n = static_cast<std::int64_t>(rows.size());
      if (leaf.node->collate) {
        made = (*leaf.node->collate)(rows, context_of(plan, item, leaf.op));
        UNDERTOW_CHECK(made.size() == leaf.node->names.size(), DataError,
                       "the batch function gave {} columns where {} are expected: {}", made.size(),
                       leaf.node->names.size(), fmt::join(leaf.node->names, ", "));
      } else {
        made = stack(*leaf.node, rows);
      }
      watch.lap(leaf.clock, n);
      break;
    }
  }
  const auto samples = static_cast<std::int64_t>(leaf.kind == Leaf::Kind::kBatch ? item.payload->items.size() : 1);
  Stopwatch watch;
  try {
    if (leaf.kind == Leaf::Kind::kSource && !cached) {
      fetch(leaf, context_of(plan, item, leaf.op), row, watch);
      watch.lap(leaf.clock, 1);
    }
    for (std::size_t i = first_step; i < leaf.steps.size(); ++i) {
      const Step& s = leaf.steps[i];
      if (s.node->cache) {
        s.node->cache->keep(leaf.node, item.row, row.finish());
        continue;
      }
      const Pass pass(s.gate, watch);
      apply(*s.node, row, context_of(plan, item, s.op));
      if (s.clock) watch.lap(s.clock, samples);
    }
  } catch (const Error& e) {
    e.rethrow_with(place_of(leaf, item));
  }
}

Row evaluate(const Plan& plan, Item& item, Scratch& scratch) {
  LazyRow row(Row(), plan.fuse);
  evaluate(plan, item, scratch, row);
  try {
    row.finish();
  } catch (const Error& e) {
    e.rethrow_with(place_of(leaf_of(plan, item), item));
  }
  return std::move(row.finish());
}

void write(const Plan& plan, Item& item, BatchTarget target, std::span<const ColumnSpec> specs, Resizer& resizer,
           Scratch& scratch) {
  const Leaf& leaf = leaf_of(plan, item);
  if (leaf.kind == Leaf::Kind::kBatch && leaf.steps.empty() && !leaf.node->collate) {
    const std::span<Item> items(item.payload->items);
    if (gather(plan, items, target, scratch)) return;
    // Texts are as wide as the longest of the batch, which shows once all rows are there.
    if (std::none_of(specs.begin(), specs.end(), [](const ColumnSpec& s) { return s.text; })) {
      write_rows(plan, items, leaf, target, specs, resizer, scratch);
      return;
    }
  }
  LazyRow row(Row(), plan.fuse);
  evaluate(plan, item, scratch, row);
  for (std::size_t c = 0; c < row.size(); ++c) {
    if (fits(row, c, specs[c], 0)) continue;
    target = resizer.resize(respecify(row, specs, 0, 0, scratch));
    break;
  }
  write_columns(plan, item, row, target, 0, nullptr);
}

std::size_t batch_rows(const Plan& plan, const Item& item) {
  return leaf_of(plan, item).kind == Leaf::Kind::kBatch ? item.payload->items.size() : 0;
}

}  // namespace undertow::data
