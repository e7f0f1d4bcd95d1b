// SPDX-License-Identifier: Apache-2.0
// Checkpoint files: named tensors and texts. The options of MindSpore's functions are in
// undertow/train/serialization.py.
#include "undertow/train/serialization.h"

#include "python/src/cells.h"
#include "undertow/formats/checkpoint.h"

namespace undertow::python {

void bind_serialization(nb::module_& m) {
  m.def(
      "_save_checkpoint",
      [](const std::string& path, const std::vector<std::pair<std::string, nb::object>>& items, bool crc) {
        std::vector<formats::CheckpointEntry> entries;
        for (const auto& [name, value] : items) {
          if (nb::isinstance<nb::str>(value)) entries.push_back({name, {}, nb::cast<std::string>(value)});
          else entries.push_back({name, to_tensor(value), {}});
        }
        nb::gil_scoped_release release;
        formats::save_checkpoint(path, entries, crc);
      },
      "path"_a, "entries"_a, "crc"_a);
  m.def(
      "_load_checkpoint",
      [](const std::string& path, bool check_crc) {
        std::vector<formats::CheckpointEntry> entries;
        {
          nb::gil_scoped_release release;
          entries = formats::load_checkpoint(path, check_crc);
        }
        nb::list out;
        for (const formats::CheckpointEntry& entry : entries) {
          const nb::object value =
              entry.tensor.defined() ? nb::cast(Parameter(entry.tensor, entry.name)) : nb::cast(entry.text);
          out.append(nb::make_tuple(entry.name, value));
        }
        return out;
      },
      "path"_a, "check_crc"_a);
  m.def("_has_crc", &formats::has_crc, "path"_a);
  m.def(
      "_load_param_into_net",
      [](nn::Cell& net, const NamedParameters& parameters, bool strict) {
        const LoadResult result = load_param_into_net(net, parameters, strict);
        return nb::make_tuple(result.param_not_load, result.ckpt_not_load, result.by_order);
      },
      "net"_a, "parameters"_a, "strict"_a);
}

}  // namespace undertow::python
