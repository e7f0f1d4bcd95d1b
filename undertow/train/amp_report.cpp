// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/amp_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/precision.h"
#include "undertow/runtime/compile.h"
#include "undertow/runtime/trace.h"
#include "undertow/train/model.h"

namespace undertow::amp {
namespace {

using nn::Cell;
using Rows = std::vector<std::vector<std::string>>;

/// Columns side by side, each as wide as its widest entry; the first row is the head.
std::string table(const Rows& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) line += fmt::format("{:<{}}  ", row[c], widths[c]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

void list_cells(const Cell& cell, const std::string& path, const Report::CellRow& around, Report& report) {
  Report::CellRow row{path, cell.cls_name(), around.dtype, around.why};
  if (const auto& p = cell.precision()) {
    row.why = p->why;
    row.dtype = p->ops.mode == ops::Precision::kAuto ? "by operator" : std::string(name_of(p->ops.dtype));
    if (p->ops.mode == ops::Precision::kAllow) row.dtype = name_of(DType::kFloat32);
  }
  report.cells.push_back(row);
  for (const auto& [name, child] : cell.children())
    list_cells(*child, path.empty() ? name : path + "." + name, row, report);
}

double limit_of(DType dtype) {
  if (dtype == DType::kFloat16) return 65504;
  if (dtype == DType::kBFloat16) return 0x1.FEp127;
  return std::numeric_limits<float>::max();
}

}  // namespace

std::string Report::str() const {
  Rows rows{{"cell", "class", "dtype", "why"}};
  for (const CellRow& c : cells) rows.push_back({c.path.empty() ? "(network)" : c.path, c.cls, c.dtype, c.why});
  std::string text = table(rows);
  if (!compiled) return text + "\ncasts: no step of this network has been compiled yet\n";
  std::int64_t bytes = 0;
  for (const CastRow& c : casts) bytes += c.bytes;
  text += fmt::format("\ncasts that write a tensor: {}, {} bytes a step\n", casts.size(), bytes);
  if (casts.empty()) return text;
  rows = {{"edge", "cell", "from", "to", "bytes"}};
  for (const CastRow& c : casts) rows.push_back({c.edge, c.cell, c.from, c.to, std::to_string(c.bytes)});
  return text + table(rows);
}

Report report(const Ref<Cell>& network) {
  UNDERTOW_CHECK(network, TypeError, "amp.report: 'network' must be a Cell");
  Report r;
  list_cells(*network, "", {"", "", std::string(name_of(DType::kFloat32)), "no level"}, r);
  const auto program = runtime::newest_program(network->get_parameters());
  r.compiled = program != nullptr;
  if (!program) return r;
  for (const transforms::Cast& c : program->casts())
    r.casts.push_back({std::string(transforms::name_of(c.edge)), c.cell, std::string(name_of(c.from)),
                       std::string(name_of(c.to)), c.bytes});
  return r;
}

/// One cell's hook and what it has seen. The hook holds the probe, the probe a cell that may go first: removed by hand.
struct WatchImpl::Probe {
  Ref<Cell> cell;
  std::string path;
  int hook = -1, order = -1;
  DType dtype = DType::kFloat32;
  Parameter largest{Tensor::scalar(0.f), "watch", false};
};

WatchImpl::WatchImpl(const Ref<Cell>& network, std::int64_t steps) : steps_(steps) {
  UNDERTOW_CHECK(network, TypeError, "amp.watch: the model has no network");
  UNDERTOW_CHECK(steps >= 1, ValueError, "amp.watch: 'steps' must be at least 1, got {}", steps);
  auto calls = std::make_shared<int>(0);
  for (const auto& [path, cell] : network->cells_and_names()) {
    auto probe = std::make_shared<Probe>();
    probe->cell = cell;
    probe->path = path;
    probe->largest.set_name("watch." + (path.empty() ? cell->cls_name() : path));
    const std::weak_ptr<Probe> weak = probe;
    probe->hook =
        cell->register_forward_hook([weak, calls](Cell& c, const std::vector<nn::Value>&, const nn::Value& y) {
          const auto p = weak.lock();
          if (!p || !c.training()) return nn::Value();
          for (const Tensor& t : y.tensors()) {
            if (!ops::is_amp_type(t.dtype()) || t.size() == 0) continue;
            if (p->order < 0) p->order = (*calls)++;
            p->dtype = t.dtype();
            const ops::PrecisionScope off;
            const Tensor top = ops::reduce_max(ops::cast(ops::abs(ops::stop_gradient(t)), DType::kFloat32));
            // Steps that loss scaling skips are those with the largest values.
            std::optional<runtime::AlwaysWritten> always;
            if (runtime::Trace* trace = runtime::current_trace()) always.emplace(*trace);
            ops::assign(p->largest, ops::maximum(p->largest, top));
          }
          return nn::Value();
        });
    probes_.push_back(std::move(probe));
  }
}

WatchImpl::~WatchImpl() {
  for (const auto& p : probes_) p->cell->remove_hook(p->hook);
}

std::vector<WatchImpl::Row> WatchImpl::rows() const {
  std::vector<std::shared_ptr<Probe>> ran;
  for (const auto& p : probes_)
    if (p->order >= 0) ran.push_back(p);
  std::sort(ran.begin(), ran.end(), [](const auto& a, const auto& b) { return a->order < b->order; });
  std::vector<Row> out;
  for (const auto& p : ran)
    out.push_back({p->path, p->cell->cls_name(), p->dtype, p->largest.item_as_double(), limit_of(p->dtype)});
  return out;
}

std::string WatchImpl::str() const {
  Rows table_rows{{"cell", "class", "dtype", "largest", "of the limit"}};
  for (const Row& r : rows()) {
    const bool finite = std::isfinite(r.largest);
    table_rows.push_back({r.path.empty() ? "(network)" : r.path, r.cls, std::string(name_of(r.dtype)),
                          fmt::format("{:.4g}", r.largest),
                          finite ? fmt::format("{:.2g} %", 100 * r.largest / r.limit) : "exceeded"});
  }
  return fmt::format("largest absolute values in {} steps\n{}", seen_, table(table_rows));
}

void WatchImpl::on_train_step_end(RunContext& context) {
  if (done_) return;
  seen_ += std::max<std::int64_t>(1, static_cast<std::int64_t>(context.original_args().step_losses.size()));
  if (seen_ >= steps_) finish();
}

void WatchImpl::on_train_end(RunContext&) {
  if (!done_ && seen_ > 0) finish();
}

void WatchImpl::finish() {
  done_ = true;
  print_line(str());
  for (const auto& p : probes_) p->cell->remove_hook(p->hook);
}

Ref<WatchImpl> watch(Model& model, std::int64_t steps) {
  auto made = make_ref<WatchImpl>(model.network(), steps);
  model.add_callback(made);
  return made;
}

}  // namespace undertow::amp
