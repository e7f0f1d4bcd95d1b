// SPDX-License-Identifier: Apache-2.0
// nn: layers and containers, with MindSpore's argument names and defaults.
#include "undertow/train/layers.h"

#include "python/src/layer_args.h"
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

void bind_conv(nb::module_& m) {
  auto c = cell_class<nn::Conv2dCell, Cell>(
      m, "Conv2d",
      "2-D convolution of (N, C, H, W). Parameters: weight (out, in / group, kh, kw), bias (out,). pad_mode "
      "'same' gives ceil(in / stride) outputs, 'valid' pads nothing, 'pad' takes `padding`.");
  c.def(
      "__init__",
      [](Self<nn::Conv2dCell> self, std::int64_t in, std::int64_t out, const Ints& kernel, const Ints& stride,
         const std::string& pad_mode, const Ints& padding, const Ints& dilation, std::int64_t group, bool has_bias,
         const InitArg& w, const InitArg& b, const std::string& format, DType dtype) {
        construct_cell(
            self, in, out, int_pair(kernel, "Conv2d: kernel_size"),
            nn::Conv2dOptions{int_pair(stride, "Conv2d: stride"), pad_mode, four(padding, "Conv2d: padding"),
                              int_pair(dilation, "Conv2d: dilation"), group, has_bias, w.init, b.init, format, dtype});
      },
      "in_channels"_a, "out_channels"_a, "kernel_size"_a, "stride"_a = 1, "pad_mode"_a = "same", "padding"_a = 0,
      "dilation"_a = 1, "group"_a = 1, "has_bias"_a = false, "weight_init"_a.none() = nb::none(),
      "bias_init"_a.none() = nb::none(), "data_format"_a = "NCHW", "dtype"_a = dtype_object(DType::kFloat32));
  c.def_prop_ro("in_channels", &nn::Conv2dCell::in_channels).def_prop_ro("out_channels", &nn::Conv2dCell::out_channels);
  c.def("extend_repr", [](const nn::Conv2dCell& c) {
    const Shape w = c.get_param("weight").shape();
    return fmt::format("input_channels={}, output_channels={}, kernel_size=({}, {}), has_bias={}", c.in_channels(),
                       c.out_channels(), w[2], w[3], flag(c.get_param("bias").defined()));
  });
}

template <typename T>
void bind_batch_norm(nb::module_& m, const char* name, const char* doc) {
  auto c = cell_class<T, Cell>(m, name, doc);
  c.def(
      "__init__",
      [](Self<T> self, std::int64_t features, double eps, double momentum, bool affine, const InitArg& gamma,
         const InitArg& beta, const InitArg& mean, const InitArg& var, std::optional<bool> use_batch,
         const std::string& format, DType dtype) {
        construct_cell(self, features,
                       nn::BatchNormOptions{eps, momentum, affine, gamma.init, beta.init, mean.init, var.init,
                                            use_batch, format, dtype});
      },
      "num_features"_a, "eps"_a = 1e-5, "momentum"_a = 0.9, "affine"_a = true, "gamma_init"_a = "ones",
      "beta_init"_a = "zeros", "moving_mean_init"_a = "zeros", "moving_var_init"_a = "ones",
      "use_batch_statistics"_a.none() = nb::none(), "data_format"_a = "NCHW",
      "dtype"_a = dtype_object(DType::kFloat32));
  c.def_prop_ro("num_features", &T::num_features);
  c.def("extend_repr", [](const T& c) { return fmt::format("num_features={}", c.num_features()); });
}

void bind_pools(nb::module_& m) {
  auto max = cell_class<nn::MaxPool2dCell, Cell>(m, "MaxPool2d",
                                                 "Largest of each window of (N, C, H, W); NaN wins. The "
                                                 "stride is 1 unless told.");
  max.def(
      "__init__",
      [](Self<nn::MaxPool2dCell> self, const Ints& kernel, const Ints& stride, const std::string& pad_mode,
         const Ints& padding, const Ints& dilation, bool return_indices, bool ceil_mode, const std::string& format) {
        UNDERTOW_CHECK(dilation.values == std::vector<std::int64_t>(dilation.values.size(), 1), ValueError,
                       "MaxPool2d: dilation other than 1 is not supported yet");
        UNDERTOW_CHECK(!return_indices, ValueError, "MaxPool2d: return_indices=True is not supported yet");
        UNDERTOW_CHECK(!ceil_mode, ValueError, "MaxPool2d: ceil_mode=True is not supported yet");
        construct_cell(self, nn::MaxPool2dOptions{int_pair(kernel, "MaxPool2d: kernel_size"),
                                                  int_pair(stride, "MaxPool2d: stride"), pad_mode,
                                                  four(padding, "MaxPool2d: padding"), format});
      },
      "kernel_size"_a = 1, "stride"_a = 1, "pad_mode"_a = "valid", "padding"_a = 0, "dilation"_a = 1,
      "return_indices"_a = false, "ceil_mode"_a = false, "data_format"_a = "NCHW");
  auto avg = cell_class<nn::AvgPool2dCell, Cell>(m, "AvgPool2d",
                                                 "Mean of each window of (N, C, H, W). The stride is 1 "
                                                 "unless told.");
  avg.def(
      "__init__",
      [](Self<nn::AvgPool2dCell> self, const Ints& kernel, const Ints& stride, const std::string& pad_mode,
         const Ints& padding, bool ceil_mode, bool count, nb::handle divisor, const std::string& format) {
        UNDERTOW_CHECK(!ceil_mode, ValueError, "AvgPool2d: ceil_mode=True is not supported yet");
        UNDERTOW_CHECK(divisor.is_none(), ValueError, "AvgPool2d: divisor_override is not supported yet");
        construct_cell(self, nn::AvgPool2dOptions{int_pair(kernel, "AvgPool2d: kernel_size"),
                                                  int_pair(stride, "AvgPool2d: stride"), pad_mode,
                                                  four(padding, "AvgPool2d: padding"), count, format});
      },
      "kernel_size"_a = 1, "stride"_a = 1, "pad_mode"_a = "valid", "padding"_a = 0, "ceil_mode"_a = false,
      "count_include_pad"_a = true, "divisor_override"_a.none() = nb::none(), "data_format"_a = "NCHW");
}

template <typename T>
void bind_plain(nb::module_& m, const char* name, const char* doc) {
  cell_class<T, Cell>(m, name, doc).def("__init__", [](Self<T> self) { construct_cell(self); });
}

void bind_simple(nb::module_& m) {
  bind_plain<nn::ReLUCell>(m, "ReLU", "max(x, 0); NaN stays NaN.");
  bind_plain<nn::SigmoidCell>(m, "Sigmoid", "1 / (1 + e^-x)");
  bind_plain<nn::TanhCell>(m, "Tanh", "Hyperbolic tangent.");
  cell_class<nn::SoftmaxCell, Cell>(m, "Softmax", "exp(x) / sum(exp(x)) along an axis.")
      .def(
          "__init__", [](Self<nn::SoftmaxCell> self, std::int64_t axis) { construct_cell(self, axis); }, "axis"_a = -1);
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
  bind_conv(m);
  bind_batch_norm<nn::BatchNorm1dCell>(m, "BatchNorm1d",
                                       "Batch normalisation of (N, C). Parameters: gamma, beta, "
                                       "moving_mean, moving_variance.");
  bind_batch_norm<nn::BatchNorm2dCell>(m, "BatchNorm2d",
                                       "Batch normalisation of (N, C, H, W). Parameters: gamma, beta, "
                                       "moving_mean, moving_variance.");
  bind_pools(m);
  bind_simple(m);
  bind_container<nn::SequentialCellImpl>(m, "SequentialCell",
                                         "Cells called one after the other: from cells, a list, or "
                                         "an OrderedDict of them.");
  bind_container<nn::CellListImpl>(m, "CellList", "Cells held by number; each is called by the user.");
}

}  // namespace undertow::python
