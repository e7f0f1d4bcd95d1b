// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/amp.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

#include "undertow/base/check.h"
#include "undertow/base/log.h"
#include "undertow/ir/op_set.h"
#include "undertow/runtime/context.h"
#include "undertow/train/conv_layers.h"
#include "undertow/train/layers.h"
#include "undertow/train/loss.h"
#include "undertow/train/loss_scale.h"
#include "undertow/train/model.h"
#include "undertow/train/norm_layers.h"
#include "undertow/train/recurrent.h"
#include "undertow/train/wrap.h"

namespace undertow::amp {
namespace {

using nn::Cell;
using nn::CellPrecision;
using Mode = ops::Precision::Mode;
using CellTest = std::function<bool(const Cell&)>;

template <typename... T>
bool is_any(const Cell& cell) {
  return (... || (dynamic_cast<const T*>(&cell) != nullptr));
}
bool is_white(const Cell& c) { return is_any<nn::ConvCellBase, nn::DenseCell, nn::RecurrentStepCell>(c); }
bool is_black(const Cell& c) { return is_any<nn::BatchNormCell, nn::BatchNorm3dCell, nn::LayerNormCell>(c); }
/// Cells that hand their inputs on, or have numbers of their own: a label must not be rounded on its way to the loss.
bool is_wrapper(const Cell& c) {
  return is_any<nn::WithLossCellImpl, nn::WithEvalCellImpl, nn::TrainOneStepCellImpl,
                nn::TrainOneStepWithLossScaleCellImpl, nn::FixedLossScaleUpdateCellImpl,
                nn::DynamicLossScaleUpdateCellImpl>(c);
}

/// Gives the cells of a network their precisions.
class Setter {
 public:
  Setter(const Ref<Cell>& network, std::string level, DType half)
      : network_(network), level_(std::move(level)), half_(half) {}

  /// False: the network has this level already.
  bool begin() const {
    for (const auto& [path, cell] : network_->cells_and_names()) {
      const auto& p = cell->precision();
      if (!p || p->level.empty()) continue;
      UNDERTOW_CHECK(p->level == level_ && p->half == half_, ValueError,
                     "{}{} is at level {} in {} already; level {} in {} needs a network that has no level yet",
                     network_->cls_name(), path.empty() ? "" : ": cell '" + path + "'", p->level, name_of(p->half),
                     level_, name_of(half_));
      return false;
    }
    return true;
  }

  /// White cells and ops in half; around them float32.
  void allow(const CellTest& white, std::shared_ptr<const std::set<std::string>> ops) {
    each([&](Cell& cell, bool root) {
      if (white(cell)) set(cell, Mode::kRegion, half_, DType::kFloat32, "in the allow list");
      else if (root) set(cell, Mode::kAllow, half_, DType::kFloat32, "matrix products in half", std::move(ops));
    });
  }
  /// Everything in half but black cells.
  void deny(const CellTest& black, const char* why) {
    each([&](Cell& cell, bool root) {
      const std::optional<DType> out = root ? std::optional(DType::kFloat32) : std::nullopt;
      if (black(cell)) set(cell, Mode::kRegion, DType::kFloat32, out.value_or(half_), why);
      else set(cell, Mode::kRegion, half_, out, "");
    });
  }
  void by_operator() {
    each([&](Cell& cell, bool root) {
      if (root) set(cell, Mode::kAuto, half_, DType::kFloat32, "by operator");
    });
  }

 private:
  template <typename F>
  void each(F&& f) {
    for (const auto& [path, cell] : network_->cells_and_names()) {
      if (cell->precision() && cell->precision()->chosen) continue;
      if (is_any<nn::OptimizerCell>(*cell)) set(*cell, Mode::kOff, DType::kFloat32, {}, "optimizer state is float32");
      else if (is_any<nn::LossBase>(*cell)) set(*cell, Mode::kRegion, DType::kFloat32, {}, "losses are float32");
      else if (is_wrapper(*cell)) set(*cell, Mode::kOff, DType::kFloat32, {}, "hands its inputs on");
      else f(*cell, path.empty());
    }
  }
  void set(Cell& cell, Mode mode, DType dtype, std::optional<DType> output, const std::string& why,
           std::shared_ptr<const std::set<std::string>> low = {}) {
    CellPrecision p{.ops = {mode, dtype, std::move(low)}, .output = output, .why = "level " + level_};
    if (!why.empty()) p.why += ": " + why;
    if (half_ == DType::kFloat32) p.why += "; the device is fast in no half type";
    p.level = level_;
    p.half = half_;
    cell.set_precision(std::make_shared<const CellPrecision>(std::move(p)));
  }

  Ref<Cell> network_;
  std::string level_;
  DType half_;
};

const std::map<std::string, std::vector<std::string>>& operators() {
  // MindSpore's names of operators: the primitives that they are made of here.
  static const auto* all = new std::map<std::string, std::vector<std::string>>{
      {"MatMul", {"matmul"}},
      {"BatchMatMul", {"matmul"}},
      {"Conv2D", {"conv2d"}},
      {"Conv3D", {"conv3d"}},
      {"Conv2DTranspose", {"conv2d_grad_input"}},
      {"Conv3DTranspose", {"conv3d_grad_input"}},
      {"Conv2DBackpropInput", {"conv2d_grad_input"}},
      {"ReLU", {"relu"}},
      {"Add", {"add"}},
      {"Sub", {"sub"}},
      {"Mul", {"mul"}},
      {"Div", {"div"}},
      {"Exp", {"exp"}},
      {"Log", {"log"}},
      {"Tanh", {"tanh"}},
      {"Sigmoid", {"sigmoid"}},
      {"Pow", {"pow"}},
      {"Sqrt", {"sqrt"}},
      {"ReduceSum", {"reduce_sum"}},
      {"MaxPool", {"max_pool2d"}},
      {"AvgPool", {"avg_pool2d"}},
  };
  return *all;
}

/// How many letters must change to make one word the other.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const bool same =
          std::tolower(static_cast<unsigned char>(a[i])) == std::tolower(static_cast<unsigned char>(b[j]));
      const std::size_t changed = std::min({row[j] + 1, row[j + 1] + 1, diagonal + (same ? 0 : 1)});
      diagonal = std::exchange(row[j + 1], changed);
    }
  }
  return row.back();
}

/// One warning for all names that matched nothing, with what the network and the operators have near them.
void warn_unmatched(const std::vector<std::string>& names, const std::set<std::string>& known) {
  std::vector<std::string> each;
  for (const std::string& name : names) {
    std::vector<std::string> near(known.begin(), known.end());
    std::stable_sort(near.begin(), near.end(),
                     [&](const auto& a, const auto& b) { return distance(a, name) < distance(b, name); });
    near.resize(std::min<std::size_t>(near.size(), 3));
    each.push_back(fmt::format("'{}' (near it: {})", name, fmt::join(near, ", ")));
  }
  log_warning(fmt::format("custom_mixed_precision: no cell of the network and no operator is a {}",
                          fmt::join(each, ", nor a ")));
}

/// Cells that an entry matches; names that match nothing are warned of. Operators are added to `ops`, if any.
CellTest match(const Cell& network, const std::vector<Entry>& entries, std::set<std::string>* ops) {
  std::set<const Cell*> found;
  std::set<std::string> known;
  std::vector<std::string> unmatched;
  const auto cells = const_cast<Cell&>(network).cells_and_names();
  for (const auto& [_, cell] : cells) known.insert(cell->cls_name());
  if (ops)
    for (const auto& [name, _] : operators()) known.insert(name);
  for (const Entry& e : entries) {
    bool any = false;
    for (const auto& [_, cell] : cells)
      if (e.is ? e.is(*cell) : cell->cls_name() == e.name) any = true, found.insert(cell.get());
    const auto op = operators().find(e.name);
    if (ops && op != operators().end()) any = true, ops->insert(op->second.begin(), op->second.end());
    if (!any) unmatched.push_back(e.name);
  }
  if (!unmatched.empty()) warn_unmatched(unmatched, known);
  return [found = std::move(found)](const Cell& c) { return found.contains(&c); };
}

}  // namespace

Ref<Cell> auto_mixed_precision(const Ref<Cell>& network, const LevelOptions& o) {
  UNDERTOW_CHECK(network, TypeError, "auto_mixed_precision: 'network' must be a Cell");
  const std::string& level = o.amp_level;
  UNDERTOW_CHECK(level == "O0" || level == "O1" || level == "O2" || level == "O3" || level == "auto", ValueError,
                 "the amp level '{}' is not known; use O0, O1, O2, O3 or auto", level);
  UNDERTOW_CHECK(!o.dtype || is_half(*o.dtype), TypeError,
                 "the dtype of mixed precision must be float16 or bfloat16, got {}", name_of(*o.dtype));
  if (level == "O0") return network;
  Setter setter(network, level, half_type(o.dtype));
  if (!setter.begin()) return network;
  if (level == "O1") setter.allow(is_white, nullptr);
  else if (level == "auto") setter.by_operator();
  else if (o.keep_batchnorm_fp32.value_or(level == "O2")) setter.deny(is_black, "normalises in float32");
  else setter.deny([](const Cell&) { return false; }, "");
  return network;
}

Ref<Cell> custom_mixed_precision(const Ref<Cell>& network, const Lists& lists) {
  UNDERTOW_CHECK(network, TypeError, "custom_mixed_precision: 'network' must be a Cell");
  UNDERTOW_CHECK(lists.white_list.empty() != lists.black_list.empty(), ValueError,
                 "custom_mixed_precision takes either a white_list or a black_list, and not an empty one");
  UNDERTOW_CHECK(!lists.dtype || is_half(*lists.dtype), TypeError,
                 "the dtype of mixed precision must be float16 or bfloat16, got {}", name_of(*lists.dtype));
  Setter setter(network, "custom", half_type(lists.dtype));
  if (!setter.begin()) return network;
  if (lists.black_list.empty()) {
    auto ops = std::make_shared<std::set<std::string>>();
    const CellTest white = match(*network, lists.white_list, ops.get());
    setter.allow(white, std::move(ops));
  } else {
    setter.deny(match(*network, lists.black_list, nullptr), "in the deny list");
  }
  return network;
}

std::vector<std::string> get_white_list() {
  return {"Conv1d",          "Conv2d",
          "Conv3d",          "Conv1dTranspose",
          "Conv2dTranspose", "Conv3dTranspose",
          "Dense",           "LSTMCell",
          "RNNCell",         "GRUCell",
          "Conv2D",          "Conv3D",
          "Conv2DTranspose", "Conv2DBackpropInput",
          "MatMul",          "BatchMatMul"};
}
std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const auto& [name, _] : operators()) names.push_back(name);
  return names;
}
std::vector<std::string> get_black_list() { return {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm"}; }

Ref<Cell> build_train_network(const Ref<Cell>& network, const Ref<nn::OptimizerCell>& optimizer,
                              const Ref<Cell>& loss_fn, const LevelOptions& o,
                              std::optional<Ref<LossScaleManagerImpl>> manager) {
  UNDERTOW_CHECK(optimizer, TypeError, "build_train_network: 'optimizer' must be an Optimizer");
  if (!manager) manager = default_loss_scale_manager(o.amp_level);
  const Model model(auto_mixed_precision(network, o), loss_fn, optimizer, {.loss_scale_manager = manager});
  return model.train_network();
}

}  // namespace undertow::amp
