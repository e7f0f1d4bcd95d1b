// SPDX-License-Identifier: Apache-2.0
// Errors of wrong arguments. nanobind's lists the signatures that it knows; users want the argument's name, what it got
// and what it takes. Every bound function is called through a function of ours, which asks Python for a better text
// when that error comes up (undertow/_arguments.py), and otherwise costs nothing that can be measured.
#include <array>
#include <string_view>
#include <unordered_set>

#include "python/src/common.h"

namespace undertow::python {
namespace {

constexpr std::size_t kMost = 8;
// A count of arguments; CPython's flag is the highest bit, and nanobind has one of its own below it.
constexpr std::size_t kCount = 0xffff;
std::array<vectorcallfunc, kMost> g_original{};  // nanobind has a few, by the form of a function's arguments

void explain(PyObject* function, PyObject* const* args, std::size_t nargs, PyObject* keywords) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const auto restore = [&] { PyErr_Restore(type, value, trace); };
  try {
    const std::string text = nb::cast<std::string>(nb::str(nb::handle(value)));
    if (text.find("incompatible function arguments") == std::string::npos) return restore();
    nb::list positional;
    for (std::size_t i = 0; i < nargs; ++i) positional.append(nb::handle(args[i]));
    nb::dict named;
    if (keywords != nullptr)
      for (std::size_t i = 0; i < nb::len(nb::handle(keywords)); ++i)
        named[nb::handle(keywords)[i]] = nb::handle(args[nargs + i]);
    const nb::object better =
        nb::module_::import_("undertow._arguments").attr("explain")(nb::handle(function), positional, named);
    if (better.is_none()) return restore();
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_SetObject(PyExc_TypeError, better.ptr());
  } catch (const std::exception&) {
    restore();
  }
}

template <std::size_t I>
PyObject* checked(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* keywords) {
  PyObject* result = g_original[I](self, args, nargsf, keywords);
  if (result == nullptr) [[unlikely]]
    explain(self, args, nargsf & kCount, keywords);
  return result;
}

template <std::size_t... I>
constexpr std::array<vectorcallfunc, kMost> all_checked(std::index_sequence<I...>) {
  return {checked<I>...};
}
constexpr auto kChecked = all_checked(std::make_index_sequence<kMost>{});

void watch_function(nb::handle function) {
  const Py_ssize_t offset = Py_TYPE(function.ptr())->tp_vectorcall_offset;
  auto& slot = *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function.ptr()) + offset);
  for (std::size_t i = 0; i < kMost; ++i) {
    if (slot == kChecked[i]) return;
    if (g_original[i] == nullptr) g_original[i] = slot;
    if (g_original[i] == slot) {
      slot = kChecked[i];
      return;
    }
  }
}

void watch(nb::handle holder, std::unordered_set<PyObject*>& seen) {
  if (!seen.insert(holder.ptr()).second) return;
  const nb::object members = holder.attr("__dict__");
  for (nb::handle member : nb::list(members.attr("values")())) {
    const std::string_view kind = Py_TYPE(member.ptr())->tp_name;
    if (kind == "nanobind.nb_func" || kind == "nanobind.nb_method") watch_function(member);
    else if (PyModule_Check(member.ptr()) || PyType_Check(member.ptr())) watch(member, seen);
  }
}

}  // namespace

void explain_wrong_arguments(nb::module_& m) {
  std::unordered_set<PyObject*> seen;
  watch(m, seen);
}

}  // namespace undertow::python
