// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/serialization.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "undertow/base/check.h"
#include "undertow/formats/checkpoint.h"

namespace undertow {
namespace {

using ByName = std::unordered_map<std::string, const Parameter*>;

/// The shape without what trailing ones it has beyond `rank`.
Shape without_trailing_ones(Shape shape, int rank) {
  while (shape.rank() > rank && shape.back() == 1) {
    Shape shorter;
    for (int i = 0; i + 1 < shape.rank(); ++i) shorter.push_back(shape[i]);
    shape = shorter;
  }
  return shape;
}

/// The value as the parameter wants it. Throws where it does not fit.
Tensor fitting(const std::string& name, const Parameter& to, const Tensor& from, bool strict) {
  UNDERTOW_CHECK(without_trailing_ones(from.shape(), to.ndim()) == to.shape(), ShapeError,
                 "load_param_into_net: parameter '{}' has shape {}, the checkpoint's has {}", name, to.shape().str(),
                 from.shape().str());
  const Tensor value = from.view(to.shape());
  if (value.dtype() == to.dtype()) return value;
  const bool same_kind = (is_floating(value.dtype()) && is_floating(to.dtype())) ||
                         (is_integral(value.dtype()) && is_integral(to.dtype()));
  UNDERTOW_CHECK(same_kind && !strict, TypeError, "load_param_into_net: parameter '{}' is {}, the checkpoint's is {}{}",
                 name, name_of(to.dtype()), name_of(value.dtype()), same_kind ? "; strict_load=False converts it" : "");
  return value.to(to.dtype());
}

/// What the checkpoint puts before the network's names: found through the first missing name that one of the
/// checkpoint's ends with. Empty where there is none.
std::string common_prefix(const std::vector<Parameter>& missing, const NamedParameters& parameters) {
  for (const Parameter& parameter : missing) {
    const std::string& name = parameter.name();
    for (const auto& [candidate, _] : parameters) {
      if (candidate.size() > name.size() + 1 && candidate.ends_with("." + name))
        return candidate.substr(0, candidate.size() - name.size());
    }
  }
  return "";
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

/// Whether what is left on both sides agrees one by one in order, shape and the last part of the name. MindSpore names
/// what is appended to a list that a cell holds already by a guess from the names before ("0.blocks.1.weight").
bool same_order(const std::vector<Parameter>& missing, const NamedParameters& unused) {
  return missing.size() == unused.size() &&
         std::equal(missing.begin(), missing.end(), unused.begin(), [](const Parameter& p, const auto& entry) {
           return p.shape() == entry.second.shape() && last_part(p.name()) == last_part(entry.first);
         });
}

}  // namespace

void save_checkpoint(const nn::Cell& network, const std::string& path) {
  std::vector<formats::CheckpointEntry> entries;
  for (const Parameter& parameter : network.get_parameters()) entries.push_back({parameter.name(), parameter, {}});
  formats::save_checkpoint(path, entries);
}

NamedParameters load_checkpoint(const std::string& path) {
  NamedParameters parameters;
  for (const formats::CheckpointEntry& entry : formats::load_checkpoint(path)) {
    if (entry.tensor.defined()) parameters.emplace_back(entry.name, Parameter(entry.tensor, entry.name));
  }
  return parameters;
}

LoadResult load_param_into_net(nn::Cell& network, const NamedParameters& parameters, bool strict) {
  ByName of_file;
  for (const auto& [name, parameter] : parameters) of_file.emplace(name, &parameter);

  LoadResult result;
  std::vector<std::pair<Parameter, Tensor>> writes;
  std::vector<Parameter> missing;
  std::unordered_set<std::string> used;
  for (const Parameter& parameter : network.get_parameters()) {
    const auto found = of_file.find(parameter.name());
    if (found == of_file.end()) {
      missing.push_back(parameter);
      continue;
    }
    used.insert(parameter.name());
    writes.emplace_back(parameter, fitting(parameter.name(), parameter, *found->second, strict));
  }
  const std::string prefix = strict ? "" : common_prefix(missing, parameters);
  if (!prefix.empty()) {
    std::vector<Parameter> still;
    for (const Parameter& parameter : missing) {
      const auto found = of_file.find(prefix + parameter.name());
      if (found == of_file.end()) {
        still.push_back(parameter);
        continue;
      }
      used.insert(found->first);
      writes.emplace_back(parameter, fitting(parameter.name(), parameter, *found->second, strict));
    }
    missing = std::move(still);
  }
  NamedParameters unused;
  for (const auto& entry : parameters)
    if (!used.contains(entry.first)) unused.push_back(entry);
  result.by_order = !strict && !missing.empty() && same_order(missing, unused);
  if (result.by_order) {
    for (std::size_t k = 0; k < missing.size(); ++k)
      writes.emplace_back(missing[k], fitting(missing[k].name(), missing[k], unused[k].second, strict));
    missing.clear();
    unused.clear();
  }
  for (const Parameter& parameter : missing) result.param_not_load.push_back(parameter.name());
  for (const auto& [name, _] : unused) result.ckpt_not_load.push_back(name);
  for (const auto& [parameter, value] : writes) parameter.assign(value);
  return result;
}

}  // namespace undertow
