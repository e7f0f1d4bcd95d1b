// SPDX-License-Identifier: Apache-2.0
// nn.Cell's methods: the tree of names and parameters, flags, hooks, copies.
#include "python/src/cells.h"
#include "undertow/base/check.h"
#include "undertow/train/cell.h"

namespace undertow::python {
namespace {

using nn::Cell;
using nn::Value;
using CellClass = nb::class_<Cell, PyCell<Cell>>;

nb::object ordered_dict() { return nb::module_::import_("collections").attr("OrderedDict")(); }

/// A name for a child or a parameter; KeyError as MindSpore has it.
void check_name(const char* function, const std::string& name, bool dots) {
  UNDERTOW_CHECK(!name.empty(), KeyError, "{}: the name must not be empty", function);
  UNDERTOW_CHECK(dots || name.find('.') == std::string::npos, KeyError, "{}: the name '{}' must not hold a dot",
                 function, name);
}

void bind_tree(CellClass& c) {
  c.def(
       "parameters_and_names",
       [](const Cell& self, const std::string& prefix, bool expand) {
         auto all = self.parameters_and_names(expand);
         if (!prefix.empty())
           for (auto& [name, _] : all) name.insert(0, prefix + ".");
         return nb::iter(nb::cast(all));
       },
       "name_prefix"_a = "", "expand"_a = true, "(name, Parameter) of this cell and all below, each once.")
      .def(
          "get_parameters",
          [](const Cell& self, bool expand) { return nb::iter(nb::cast(self.get_parameters(expand))); },
          "expand"_a = true)
      .def(
          "trainable_params",
          [](const Cell& self, bool recurse) {
            auto all = self.get_parameters(recurse);
            std::erase_if(all, [](const Parameter& p) { return !p.requires_grad(); });
            return all;
          },
          "recurse"_a = true, "A list of the parameters that are trained.")
      .def(
          "untrainable_params",
          [](const Cell& self, bool recurse) {
            auto all = self.get_parameters(recurse);
            std::erase_if(all, [](const Parameter& p) { return p.requires_grad(); });
            return all;
          },
          "recurse"_a = true)
      .def(
          "parameters_dict",
          [](const Cell& self, bool recurse) {
            nb::object dict = ordered_dict();
            for (const Parameter& p : self.get_parameters(recurse)) dict[p.name().c_str()] = wrap(p);
            return dict;
          },
          "recurse"_a = true)
      .def(
          "cells_and_names",
          [](Cell& self, nb::handle, const std::string& prefix) {
            auto all = self.cells_and_names();
            if (!prefix.empty())
              for (auto& [name, _] : all) name.insert(0, name.empty() ? prefix : prefix + ".");
            return nb::iter(nb::cast(all));
          },
          "cells"_a.none() = nb::none(), "name_prefix"_a = "",
          "(name, Cell) of this cell ('') and all below, each once.")
      .def(
          "cells",
          [](const Cell& self) {
            nb::list out;
            for (const auto& [_, child] : self.children()) out.append(nb::cast(child));
            return out;
          },
          "The direct children.")
      .def(
          "name_cells",
          [](const Cell& self) {
            nb::object dict = ordered_dict();
            for (const auto& [name, child] : self.children()) dict[name.c_str()] = nb::cast(child);
            return dict;
          },
          "The direct children by name.")
      .def(
          "get_sub_cell",
          [](nb::handle self, const std::string& target) {
            Ref<Cell> at(nb::inst_ptr<Cell>(self));
            for (std::size_t from = 0; !target.empty() && from <= target.size();) {
              const std::size_t dot = std::min(target.find('.', from), target.size());
              at = at->get_child(target.substr(from, dot - from));
              if (!at)
                throw nb::attribute_error(
                    fmt::format("there is no cell '{}' below {}", target, type_name_of(self)).c_str());
              from = dot + 1;
            }
            return at;
          },
          "target"_a, "The cell below at a path like \"block.conv\".")
      .def(
          "insert_child_to_cell",
          [](nb::handle self, const std::string& name, nb::handle child) {
            check_name("insert_child_to_cell", name, false);
            if (child.is_none()) return;
            UNDERTOW_CHECK(nb::isinstance<Cell>(child), TypeError, "insert_child_to_cell: '{}' must be a Cell, got {}",
                           name, type_name_of(child));
            nb::setattr(self, name.c_str(), child);
          },
          "child_name"_a, "child_cell"_a.none())
      .def("_insert_child", [](Cell& self, const std::string& name, Ref<Cell> c) { self.insert_child(name, c); })
      .def("_remove_child", &Cell::remove)
      .def(
          "insert_param_to_cell",
          [](nb::handle self, const std::string& name, nb::handle p, bool dots) {
            check_name("insert_param_to_cell", name, !dots);
            const Tensor* t = unwrap(p);
            UNDERTOW_CHECK(t && t->is_parameter(), TypeError, "insert_param_to_cell: '{}' must be a Parameter, got {}",
                           name, type_name_of(p));
            nb::setattr(self, name.c_str(), p);
          },
          "param_name"_a, "param"_a, "check_name_contain_dot"_a = true)
      .def(
          "apply",
          [](nb::handle self, nb::callable f) {
            for (const auto& [_, child] : nb::inst_ptr<Cell>(self)->children()) nb::cast(child).attr("apply")(f);
            f(self);
            return nb::borrow(self);
          },
          "fn"_a, "Calls fn on all cells below and then on this one; returns the cell.")
      .def(
          "update_parameters_name",
          [](Cell& self, const std::string& prefix, bool recurse) {
            for (const auto& [name, p] : self.parameters_and_names(recurse)) p.set_name(prefix + name);
          },
          "prefix"_a = "", "recurse"_a = true, "Names the parameters `prefix` and their attribute paths.")
      .def(
          "check_names",
          [](const Cell& self) {
            std::set<std::string> names;
            for (const Parameter& p : self.get_parameters())
              UNDERTOW_CHECK(names.insert(p.name()).second, ValueError,
                             "{}: two parameters have the name '{}'; rename one of them", self.cls_name(), p.name());
          },
          "Raises ValueError where two parameters have one name.")
      .def(
          "init_parameters_data",
          [](nb::handle self, bool) {
            nb::dict out;
            for (const Parameter& p : nb::inst_ptr<Cell>(self)->get_parameters()) out[wrap(p)] = wrap(p);
            return out;
          },
          "auto_parallel_mode"_a = false, "Parameters have their values from the start: {parameter: itself}.");
}

/// Keeps a value under a private attribute and returns the cell: wishes that are noted for who reads them.
template <typename F>
void note(CellClass& c, const char* name, F keep, const char* doc) {
  c.def(
      name,
      [keep](nb::handle self, const nb::args& args, const nb::kwargs& kwargs) {
        keep(self, args, kwargs);
        return nb::borrow(self);
      },
      doc);
}

void warn_once(bool& told, const char* text) {
  if (told) return;
  told = true;
  if (PyErr_WarnEx(PyExc_UserWarning, text, 1) != 0) throw nb::python_error();
}

void bind_flags(CellClass& c) {
  using Args = nb::args;
  using Kwargs = nb::kwargs;
  c.def_prop_rw("training", &Cell::training, [](Cell& self, bool mode) { self.set_train(mode); })
      .def_prop_ro("cls_name", [](const Cell& self) { return self.cls_name(); })
      .def_prop_ro("param_prefix", [](const Cell& self) { return self.param_prefix(); })
      .def_prop_rw(
          "requires_grad", [](const Cell& self) { return !self.trainable_params().empty(); }, &Cell::set_requires_grad)
      .def_prop_ro("version", &Cell::version)
      .def("set_requires_grad", &Cell::set_requires_grad, "value"_a)
      .def(
          "set_train",
          [](nb::handle self, bool mode) {
            nb::inst_ptr<Cell>(self)->set_train(mode);
            return nb::borrow(self);
          },
          "mode"_a = true, "Training (True) or evaluation for this cell and all below; returns the cell.")
      .def(
          "set_grad", [](nb::handle self, bool) { return nb::borrow(self); }, "requires_grad"_a = true,
          "Returns the cell: gradients are taken wherever they are asked for.")
      .def(
          "to_float",
          [](nb::handle self, DType dtype) {
            nb::inst_ptr<Cell>(self)->to_float(dtype);
            return nb::borrow(self);
          },
          "dst_type"_a,
          "This cell and all below compute in float16, bfloat16 or float32: their float inputs are cast, and "
          "parameters where they are used. Returns the cell.")
      .def(
          "set_inputs",
          [](nb::handle self, const Args& args, const Kwargs& kwargs) {
            self.attr("__dict__")["_set_inputs"] = kwargs.size() ? nb::object(kwargs) : nb::object(args);
          },
          "Noted for get_inputs(): programs are compiled for the inputs that come.")
      .def("get_inputs", [](nb::handle self) { return nb::getattr(self, "_set_inputs", nb::none()); })
      .def(
          "add_flags",
          [](nb::handle self, const Kwargs& flags) {
            nb::dict own = nb::borrow<nb::dict>(self.attr("__dict__"));
            if (!own.contains("_flags")) own["_flags"] = nb::dict();
            own["_flags"].attr("update")(flags);
            return nb::borrow(self);
          },
          "Notes flags for get_flags().")
      .def("add_flags_recursive",
           [](nb::handle self, const Kwargs& flags) {
             for (const auto& [_, cell] : nb::inst_ptr<Cell>(self)->cells_and_names())
               nb::cast(cell).attr("add_flags")(**flags);
             return nb::borrow(self);
           })
      .def("get_flags", [](nb::handle self) { return nb::getattr(self, "_flags", nb::dict()); });
  note(
      c, "recompute",
      [](nb::handle, const Args&, const Kwargs&) {
        static bool told = false;
        warn_once(told, "Cell.recompute has no effect: intermediate values are kept for the gradients");
      },
      "Has no effect, of which it tells once.");
  const auto nothing = [](nb::handle, const Args&, const Kwargs&) {};
  for (const char* name : {"flatten_weights", "set_jit_config", "set_boost", "set_broadcast_flag", "set_data_parallel",
                           "update_cell_type", "set_comm_fusion", "offload"})
    note(c, name, nothing, "Has no effect here; returns the cell.");
}

// ---- Hooks: the functions stand in the cell's __dict__, where Python's collector sees them.

nb::object hook_function(Cell& cell, int number) {
  const nb::handle self(static_cast<PyObject*>(cell.self_py()));
  return nb::borrow(nb::borrow<nb::dict>(self.attr("__dict__")["_hooks"])[nb::int_(number)]);
}

nb::tuple as_tuple(const std::vector<Value>& args) {
  nb::list out;
  for (const Value& a : args) out.append(from_value(a));
  return nb::tuple(out);
}

nb::object add_hook(nb::handle self, nb::handle function, bool before) {
  UNDERTOW_CHECK(PyCallable_Check(function.ptr()), TypeError, "a hook must be a function, got {}",
                 type_name_of(function));
  Cell& cell = *nb::inst_ptr<Cell>(self);
  auto number = std::make_shared<int>();
  if (before) {
    *number = cell.register_forward_pre_hook([number](Cell& c, const std::vector<Value>& args) {
      nb::gil_scoped_acquire gil;
      return to_value(hook_function(c, *number)(nb::cast(Ref<Cell>(&c)), as_tuple(args)));
    });
  } else {
    *number = cell.register_forward_hook([number](Cell& c, const std::vector<Value>& args, const Value& result) {
      nb::gil_scoped_acquire gil;
      return to_value(hook_function(c, *number)(nb::cast(Ref<Cell>(&c)), as_tuple(args), from_value(result)));
    });
  }
  nb::dict own = nb::borrow<nb::dict>(self.attr("__dict__"));
  if (!own.contains("_hooks")) own["_hooks"] = nb::dict();
  own["_hooks"][nb::int_(*number)] = function;
  return nb::module_::import_("undertow._format").attr("HookHandle")(self, *number);
}

void bind_hooks(CellClass& c) {
  c.def(
       "register_forward_pre_hook", [](nb::handle self, nb::handle f) { return add_hook(self, f, true); }, "hook_fn"_a,
       "hook_fn(cell, inputs) is called before each call and may return other inputs; remove() of the handle ends it.")
      .def(
          "register_forward_hook", [](nb::handle self, nb::handle f) { return add_hook(self, f, false); }, "hook_fn"_a,
          "hook_fn(cell, inputs, output) is called after each call and may return another output.")
      .def("_remove_hook", [](nb::handle self, int number) {
        nb::inst_ptr<Cell>(self)->remove_hook(number);
        nb::borrow<nb::dict>(self.attr("__dict__")["_hooks"]).attr("pop")(number, nb::none());
      });
  for (const char* name : {"register_backward_hook", "register_backward_pre_hook"})
    c.def(name, [name](nb::handle, const nb::args&) {
      PyErr_Format(PyExc_NotImplementedError,
                   "%s is not supported: gradients are taken of the whole step; use "
                   "ops.value_and_grad to look at them",
                   name);
      throw nb::python_error();
    });
}

// ---- Copies

nb::object copy_of(nb::handle object, nb::handle memo) {
  return nb::module_::import_("copy").attr("deepcopy")(object, memo);
}

/// copy.deepcopy's key of an object, which must live as long as `memo`: another one could get its address.
nb::object key_of(nb::handle object, nb::dict memo) {
  constexpr const char* kKept = "undertow kept";
  if (!memo.contains(kKept)) memo[kKept] = nb::list();
  memo[kKept].attr("append")(object);
  return nb::int_(reinterpret_cast<std::uintptr_t>(object.ptr()));
}

/// `to` was made like `from`: gives it from's parameters, children and attributes.
void copy_state(Cell& from, Cell& to, const nb::dict& memo) {
  to.set_auto_prefix(from.auto_prefix());
  to.set_attribute_name(from.attribute_name());
  if (from.precision()) to.set_precision(from.precision());
  // Children first: those of C++ come with parameters of their own, which stand for the originals from then on.
  for (const auto& [name, child] : from.children()) {
    const nb::object before = nb::cast(child);
    const nb::object key = key_of(before, memo);
    const Ref<Cell> own = to.get_child(name);
    if (own && !(own == child) && !memo.contains(key) && typeid(*own) == typeid(*child)) {
      memo[key] = nb::cast(own);
      copy_state(*child, *own, memo);
    } else {
      to.insert_child(name, nb::cast<Ref<Cell>>(copy_of(before, memo)));
    }
  }
  std::vector<std::pair<Parameter, std::string>> names;
  for (const auto& [name, p] : from.own_params()) {
    const nb::object before = wrap(p);
    Parameter own = to.get_param(name);
    if (own.defined() && own.impl() != p.impl() && !memo.contains(key_of(before, memo)) && own.shape() == p.shape() &&
        own.dtype() == p.dtype()) {
      own.assign(p);  // cells of C++ hold it as a member too
      own.set_requires_grad(p.requires_grad());
      memo[key_of(before, memo)] = wrap(own);
    } else {
      own = Parameter::of(*unwrap(copy_of(before, memo)));
      to.insert_param(name, own);
    }
    names.emplace_back(own, p.name());
  }
  for (const auto& [p, name] : names) p.set_name(name);
  if (PyObject* object = static_cast<PyObject*>(from.self_py())) {
    const nb::object target = nb::cast(Ref<Cell>(&to));
    const nb::dict attributes = nb::borrow<nb::dict>(nb::handle(object).attr("__dict__"));
    for (auto [key, value] : attributes) {
      const std::string name = nb::cast<std::string>(key);
      if (name == "_hooks") continue;
      nb::object copied;
      if (const Parameter p = to.get_param(name); p.defined()) copied = wrap(p);
      else if (const Ref<Cell> c = to.get_child(name)) copied = nb::cast(c);
      else copied = copy_of(value, memo);
      target.attr("__dict__")[key] = copied;
    }
  }
}

nb::object deep_copy(nb::handle self, nb::dict memo) {
  Cell& from = *nb::inst_ptr<Cell>(self);
  if (!from.maker()) throw TypeError(fmt::format("{} cannot be copied; make another one", type_name_of(self)));
  nb::object made = nb::inst_alloc(self.type());
  from.maker()(nb::inst_ptr<void>(made), nb::inst_python_derived(made));
  nb::inst_mark_ready(made);
  Cell& to = *nb::inst_ptr<Cell>(made);
  to.set_self_py(made.ptr());
  memo[key_of(self, memo)] = made;
  copy_state(from, to, memo);
  // Flags last: they differ from cell to cell.
  const auto before = from.cells_and_names(), after = to.cells_and_names();
  for (std::size_t i = 0; i < before.size() && i < after.size(); ++i) {
    if (i == 0 || before[i].second->training() != after[i].second->training())
      after[i].second->set_train(before[i].second->training());
  }
  return made;
}

}  // namespace

void bind_cell_methods(CellClass& c) {
  bind_tree(c);
  bind_flags(c);
  bind_hooks(c);
  c.def("extend_repr", [](const Cell&) { return ""; })
      .def("__dir__",
           [](nb::handle self) {
             nb::object names = nb::handle(reinterpret_cast<PyObject*>(&PyBaseObject_Type)).attr("__dir__")(self);
             for (const auto& [name, _] : nb::inst_ptr<Cell>(self)->own_params()) names.attr("append")(name);
             for (const auto& [name, _] : nb::inst_ptr<Cell>(self)->children()) names.attr("append")(name);
             return names;
           })
      .def("__repr__", [](nb::handle self) { return nb::module_::import_("undertow._format").attr("cell_repr")(self); })
      .def("__deepcopy__", &deep_copy, "memo"_a)
      .def("__reduce_ex__", [](nb::handle self, nb::handle) {
        throw TypeError(fmt::format(
            "{} cannot be pickled or copied flatly: use copy.deepcopy, or save_checkpoint for its parameters",
            type_name_of(self)));
      });
}

}  // namespace undertow::python
