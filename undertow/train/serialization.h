// SPDX-License-Identifier: Apache-2.0
// train/serialization.h: a network's parameters to a checkpoint file and back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "undertow/train/cell.h"

namespace undertow {

using NamedParameters = std::vector<std::pair<std::string, Parameter>>;

/// Writes the network's parameters, in its order, as a MindSpore .ckpt file. The file is there as a whole or, after an
/// error, the earlier one still is. Throws FileError.
void save_checkpoint(const nn::Cell& network, const std::string& path);
template <typename C>
void save_checkpoint(const nn::Handle<C>& network, const std::string& path) {
  save_checkpoint(*network, path);
}

/// The parameters of a .ckpt file in its order. Texts in the file are left out. Throws FileError, FormatError.
NamedParameters load_checkpoint(const std::string& path);

/// Names that did not find each other.
struct LoadResult {
  std::vector<std::string> param_not_load;  ///< of the network
  std::vector<std::string> ckpt_not_load;   ///< of the checkpoint
  bool by_order = false;                    ///< some were matched by their order, their names being different
};
/// Gives the network's parameters the values of the same names. All is checked before any value changes.
///
/// Shapes must agree but for trailing ones of the checkpoint. Another dtype of the same kind (float, integer) is
/// converted, unless `strict`. Where names are missing and `strict` is false, the checkpoint may hold them behind one
/// common prefix, or what is left on both sides is taken one by one where order, shapes and the last parts of the names
/// agree. Throws ShapeError or TypeError naming the parameter and both sides.
LoadResult load_param_into_net(nn::Cell& network, const NamedParameters& parameters, bool strict = false);
template <typename C>
LoadResult load_param_into_net(const nn::Handle<C>& network, const NamedParameters& parameters, bool strict = false) {
  return load_param_into_net(*network, parameters, strict);
}

}  // namespace undertow
