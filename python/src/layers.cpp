// SPDX-License-Identifier: Apache-2.0
// nn: layers and containers, with MindSpore's argument names and defaults.
#include "undertow/train/layers.h"

#include "python/src/bind_layer.h"
#include "undertow/base/check.h"

namespace undertow::python {
namespace {

using common::Init;
using nn::Cell;
template <typename T>
using Self = nb::pointer_and_handle<T>;

std::string flag(bool b) { return b ? "True" : "False"; }

void bind_dense(nb::module_& m) {
  auto c = cell_class<nn::DenseCell, Cell>(
      m, "Dense",
      "activation(x W^T + b) over the last dimension: (..., in_channels) to (..., out_channels). Parameters: "
      "weight (out, in), bias (out,).");
  c.def(
      "__init__",
      [](Self<nn::DenseCell> self, std::int64_t in, std::int64_t out, const InitArg& w, const InitArg& b, bool has_bias,
         const ActivationArg& activation, DType dtype) {
        construct_cell(self, in, out, nn::DenseOptions{w.init, b.init, has_bias, activation.activation, dtype});
        if (!has_bias) nb::setattr(self.h, "bias", nb::none());
      },
      "in_channels"_a, "out_channels"_a, "weight_init"_a.none() = nb::none(), "bias_init"_a.none() = nb::none(),
      "has_bias"_a = true, "activation"_a.none() = nb::none(), "dtype"_a = dtype_object(DType::kFloat32));
  c.def_prop_ro("in_channels", &nn::DenseCell::in_channels).def_prop_ro("out_channels", &nn::DenseCell::out_channels);
  c.def_prop_ro("has_bias", [](const nn::DenseCell& c) { return c.get_param("bias").defined(); });
  c.def("extend_repr", [](const nn::DenseCell& c) {
    return fmt::format("input_channels={}, output_channels={}, has_bias={}", c.in_channels(), c.out_channels(),
                       flag(c.get_param("bias").defined()));
  });
}

void bind_simple(nb::module_& m) {
  cell_class<nn::FlattenCell, Cell>(m, "Flatten", "Joins dimensions start_dim to end_dim.")
      .def(
          "__init__",
          [](Self<nn::FlattenCell> self, std::int64_t start, std::int64_t end) { construct_cell(self, start, end); },
          "start_dim"_a = 1, "end_dim"_a = -1);
  auto drop = cell_class<nn::DropoutCell, Cell>(
      m, "Dropout",
      "In training zeroes each element with probability p (1 - keep_prob without p) and scales the rest.");
  drop.def(
      "__init__",
      [](Self<nn::DropoutCell> self, double keep, std::optional<double> p, nb::handle) {
        construct_cell(self, nn::DropoutOptions{keep, p});
        nb::setattr(self.h, "p", nb::cast(self.p->p()));
        nb::setattr(self.h, "keep_prob", nb::cast(1 - self.p->p()));
      },
      "keep_prob"_a = 0.5, "p"_a.none() = nb::none(), "dtype"_a.none() = nb::none());
  drop.def("extend_repr", [](const nn::DropoutCell& c) { return fmt::format("p={}", c.p()); });
}

// ---- Containers: the children are numbered, so that changes in the middle number them anew.

using Named = std::vector<std::pair<std::string, Ref<Cell>>>;

Ref<Cell> cell_in(nb::handle o, const char* what) {
  if (!nb::isinstance<Cell>(o)) throw TypeError(fmt::format("{} takes cells, got {}", what, type_name_of(o)));
  return Ref<Cell>(nb::inst_ptr<Cell>(o));
}

Named named_cells(const nb::args& args, const char* what) {
  Named out;
  const auto add = [&](nb::handle h) { out.emplace_back(std::to_string(out.size()), cell_in(h, what)); };
  if (args.size() == 1 && PyDict_Check(nb::handle(args[0]).ptr())) {
    for (auto [name, cell] : nb::borrow<nb::dict>(args[0]))
      out.emplace_back(nb::cast<std::string>(name), cell_in(cell, what));
  } else if (args.size() == 1 && !nb::isinstance<Cell>(args[0])) {
    for (nb::handle h : nb::borrow<nb::object>(args[0])) add(h);
  } else {
    for (nb::handle h : args) add(h);
  }
  return out;
}

std::vector<Ref<Cell>> cells_of(const Cell& c) {
  std::vector<Ref<Cell>> out;
  for (const auto& [_, child] : c.children()) out.push_back(child);
  return out;
}

void renumber(Cell& c, const std::vector<Ref<Cell>>& cells) {
  std::vector<std::string> names;
  for (const auto& [name, _] : c.children()) names.push_back(name);
  for (const auto& name : names) c.remove(name);
  for (std::size_t i = 0; i < cells.size(); ++i) c.insert_child(std::to_string(i), cells[i]);
}

std::size_t position(std::int64_t i, std::size_t n, bool insert = false) {
  const auto size = static_cast<std::int64_t>(n);
  const std::int64_t at = i < 0 ? i + size : i;
  UNDERTOW_CHECK(at >= 0 && at < size + insert, IndexError, "index {} is out of range for {} cells", i, n);
  return static_cast<std::size_t>(at);
}

template <typename T>
void bind_container(nb::module_& m, const char* name, const char* doc) {
  auto c = cell_class<T, Cell>(m, name, doc);
  c.def("__init__", [name](Self<T> self, const nb::args& args, const nb::kwargs&) {
    const Named cells = named_cells(args, name);
    construct_cell(self);
    for (const auto& [key, cell] : cells) static_cast<Cell*>(self.p)->insert_child(key, cell);
  });
  c.def("__len__", [](const T& c) { return c.children().size(); })
      .def("__iter__", [](const T& c) { return nb::iter(nb::cast(cells_of(c))); })
      .def("__getitem__",
           [](nb::handle self, nb::handle key) -> nb::object {
             const auto cells = cells_of(*nb::inst_ptr<Cell>(self));
             if (PySlice_Check(key.ptr())) return self.type()(nb::cast(cells).attr("__getitem__")(key));
             return nb::cast(cells[position(nb::cast<std::int64_t>(key), cells.size())]);
           })
      .def("__setitem__",
           [name](T& c, std::int64_t i, nb::handle cell) {
             c.insert_child(c.children()[position(i, c.children().size())].first, cell_in(cell, name));
           })
      .def("__delitem__",
           [](T& c, nb::handle key) {
             nb::object cells = nb::cast(cells_of(c));
             cells.attr("__delitem__")(key);
             renumber(c, nb::cast<std::vector<Ref<Cell>>>(cells));
           })
      .def(
          "append",
          [name](nb::handle self, nb::handle cell) {
            Cell& c = *nb::inst_ptr<Cell>(self);
            c.insert_child(std::to_string(c.children().size()), cell_in(cell, name));
            return nb::borrow(self);
          },
          "cell"_a)
      .def(
          "extend",
          [name](nb::handle self, nb::handle cells) {
            Cell& c = *nb::inst_ptr<Cell>(self);
            for (nb::handle h : nb::borrow<nb::object>(cells))
              c.insert_child(std::to_string(c.children().size()), cell_in(h, name));
            return nb::borrow(self);
          },
          "cells"_a)
      .def(
          "insert",
          [name](T& c, std::int64_t i, nb::handle cell) {
            auto cells = cells_of(c);
            const auto at = static_cast<std::ptrdiff_t>(position(i, cells.size(), true));
            cells.insert(cells.begin() + at, cell_in(cell, name));
            renumber(c, cells);
          },
          "index"_a, "cell"_a)
      .def_prop_ro("cell_list", [](const T& c) { return nb::tuple(nb::cast(cells_of(c))); });
}

}  // namespace

void bind_layers(nb::module_& m) {
  bind_dense(m);
  bind_activations(m);
  bind_conv_layers(m);
  bind_pool_layers(m);
  bind_norm_layers(m);
  bind_basic_layers(m);
  bind_recurrent_layers(m);
  bind_transformer_layers(m);
  bind_simple(m);
  bind_container<nn::SequentialCellImpl>(m, "SequentialCell",
                                         "Cells called one after the other: from cells, a list, or "
                                         "an OrderedDict of them.");
  bind_container<nn::CellListImpl>(m, "CellList", "Cells held by number; each is called by the user.");
}

}  // namespace undertow::python
