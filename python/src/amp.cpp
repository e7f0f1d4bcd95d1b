// SPDX-License-Identifier: Apache-2.0
// Mixed precision: levels of networks.
#include "undertow/train/amp.h"

#include <nanobind/stl/pair.h>

#include <set>

#include "python/src/cells.h"

namespace undertow::python {
namespace {

/// (name, cells of the network that are of that class).
using Named = std::pair<std::string, std::vector<Ref<nn::Cell>>>;

std::vector<amp::Entry> entries(const std::vector<Named>& list) {
  std::vector<amp::Entry> out;
  for (const auto& [name, cells] : list) {
    std::set<const nn::Cell*> found;
    for (const Ref<nn::Cell>& c : cells) found.insert(c.get());
    out.emplace_back(name, [found](const nn::Cell& c) { return found.contains(&c); });
  }
  return out;
}

}  // namespace

void bind_amp(nb::module_& m) {
  m.def(
      "auto_mixed_precision",
      [](const Ref<nn::Cell>& network, const std::string& level, std::optional<DType> dtype, std::optional<bool> keep) {
        amp::auto_mixed_precision(network, {level, dtype, keep});
      },
      "network"_a, "amp_level"_a, "dtype"_a.none(), "keep_batchnorm_fp32"_a.none());
  m.def(
      "custom_mixed_precision",
      [](const Ref<nn::Cell>& network, const std::vector<Named>& white, const std::vector<Named>& black,
         std::optional<DType> dtype) { amp::custom_mixed_precision(network, {entries(white), entries(black), dtype}); },
      "network"_a, "white_list"_a, "black_list"_a, "dtype"_a.none());
  m.def("get_white_list", &amp::get_white_list);
  m.def("get_black_list", &amp::get_black_list);
}

}  // namespace undertow::python
