// SPDX-License-Identifier: Apache-2.0
// Mixed precision: levels of networks.
#include "undertow/train/amp.h"

#include <nanobind/stl/pair.h>

#include <set>

#include "python/src/cells.h"
#include "undertow/train/amp_report.h"
#include "undertow/train/model.h"

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

void bind_report(nb::module_& m) {
  using amp::Report;
  using amp::WatchImpl;
  nb::class_<Report::CellRow>(m, "ReportCell")
      .def_ro("path", &Report::CellRow::path)
      .def_ro("cls_name", &Report::CellRow::cls)
      .def_ro("dtype", &Report::CellRow::dtype)
      .def_ro("why", &Report::CellRow::why);
  nb::class_<Report::CastRow>(m, "ReportCast")
      .def_ro("edge", &Report::CastRow::edge)
      .def_ro("cell", &Report::CastRow::cell)
      .def_ro("from_dtype", &Report::CastRow::from)
      .def_ro("to_dtype", &Report::CastRow::to)
      .def_ro("bytes", &Report::CastRow::bytes);
  nb::class_<Report>(m, "Report")
      .def_ro("cells", &Report::cells)
      .def_ro("casts", &Report::casts)
      .def_ro("compiled", &Report::compiled)
      .def("__repr__", &Report::str);
  m.def("report", &amp::report, "network"_a);
  nb::class_<WatchImpl::Row>(m, "WatchRow")
      .def_ro("path", &WatchImpl::Row::path)
      .def_ro("cls_name", &WatchImpl::Row::cls)
      .def_ro("dtype", &WatchImpl::Row::dtype)
      .def_ro("largest", &WatchImpl::Row::largest)
      .def_ro("limit", &WatchImpl::Row::limit);
  nb::class_<WatchImpl, Callback>(m, "Watch")
      .def_prop_ro("done", &WatchImpl::done)
      .def_prop_ro("rows", &WatchImpl::rows)
      .def("__repr__", &WatchImpl::str);
  m.def("watch", &amp::watch, "model"_a, "steps"_a);
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
  bind_report(m);
  m.def("get_white_list", &amp::get_white_list);
  m.def("get_black_list", &amp::get_black_list);
  m.def("operator_names", &amp::operator_names);
}

}  // namespace undertow::python
