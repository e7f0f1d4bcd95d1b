// SPDX-License-Identifier: Apache-2.0
// train/amp.h: mixed precision: which cells of a network compute in a half type. Weights, optimizer state, statistics
// and losses stay in float32 at every level; values are cast where they enter and leave the half parts.
//
//   amp::auto_mixed_precision(net, {.amp_level = "O2", .dtype = DType::kBFloat16});
//
//   O0    float32
//   O1    convolutions, Dense and the steps of recurrent cells in half; other matrix products too
//   O2    all in half but BatchNorm and LayerNorm, which take and give half
//   O3    all in half
//   auto  by operator: products in half, exponentials, norms and sums of them in float32, the rest in its widest input
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "undertow/train/cell.h"
#include "undertow/train/loss_scale.h"
#include "undertow/train/optimizer.h"

namespace undertow::amp {

struct LevelOptions {
  std::string amp_level = "O0";
  std::optional<DType> dtype;               ///< default: the context's half type (runtime/context.h)
  std::optional<bool> keep_batchnorm_fp32;  ///< default: true at O2, false at O3; the other levels keep it anyway
};
/// Sets the level in place and gives the network back; its results become float32. Cells that to_float was called for
/// stay as they are. A network that has this level already stays as it is too. Throws ValueError for an unknown level
/// and for a network that has another one, TypeError for a dtype that is no half type.
Ref<nn::Cell> auto_mixed_precision(const Ref<nn::Cell>& network, const LevelOptions& options);

/// What a list names: a class of cells ("Dense"), or an operator ("MatMul").
struct Entry {
  std::string name;
  std::function<bool(const nn::Cell&)> is;  ///< whether a cell is one; default: its class has the name
  Entry(const char* n) : name(n) {}
  Entry(std::string n, std::function<bool(const nn::Cell&)> f = {}) : name(std::move(n)), is(std::move(f)) {}
};
/// As O1 with the cells and operators of `white_list`, or as O2 with the cells of `black_list` in float32: exactly one
/// of them. An entry that nothing matches is warned of. Throws as auto_mixed_precision does.
struct Lists {
  std::vector<Entry> white_list, black_list;
  std::optional<DType> dtype;
};
Ref<nn::Cell> custom_mixed_precision(const Ref<nn::Cell>& network, const Lists& lists);
/// The names that O1 and O2 go by.
std::vector<std::string> get_white_list();
std::vector<std::string> get_black_list();
/// Operators that a white list may name.
std::vector<std::string> operator_names();

/// The network at a level with its loss and optimizer as one cell: called with a batch, it trains one step.
/// `manager` scales the loss (train/loss_scale.h); default: dynamically at O2, else not.
Ref<nn::Cell> build_train_network(const Ref<nn::Cell>& network, const Ref<nn::OptimizerCell>& optimizer,
                                  const Ref<nn::Cell>& loss_fn, const LevelOptions& options,
                                  std::optional<Ref<LossScaleManagerImpl>> manager = {});

}  // namespace undertow::amp
