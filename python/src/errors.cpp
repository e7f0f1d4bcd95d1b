// SPDX-License-Identifier: Apache-2.0
// The error family as Python classes, each derived from the built-in that users expect.
#include "python/src/common.h"

namespace undertow::python {
namespace {

PyObject* error_class(nb::module_& m, const char* name, const char* doc, PyObject* base, PyObject* builtin) {
  const nb::object bases = builtin ? nb::make_tuple(nb::handle(base), nb::handle(builtin)) : nb::borrow(base);
  PyObject* cls = PyErr_NewExceptionWithDoc((std::string("undertow.") + name).c_str(), doc, bases.ptr(), nullptr);
  if (!cls) throw nb::python_error();
  m.attr(name) = nb::handle(cls);
  return cls;  // lives as long as the interpreter
}

struct Classes {
  PyObject *shape, *data, *format, *file, *device, *trace, *error;
};
Classes classes;

/// Sets the Python error of a member of the family; lets others pass.
void translate(const std::exception_ptr& p) {
  try {
    std::rethrow_exception(p);
  } catch (const ShapeError& e) {
    PyErr_SetString(classes.shape, e.what());
  } catch (const DataError& e) {
    PyErr_SetString(classes.data, e.what());
  } catch (const FormatError& e) {
    PyErr_SetString(classes.format, e.what());
  } catch (const FileError& e) {
    PyErr_SetString(classes.file, e.what());
  } catch (const DeviceError& e) {
    PyErr_SetString(classes.device, e.what());
  } catch (const TraceError& e) {
    PyErr_SetString(classes.trace, e.what());
  } catch (const ValueError& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const TypeError& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const IndexError& e) {
    PyErr_SetString(PyExc_IndexError, e.what());
  } catch (const KeyError& e) {
    PyErr_SetString(PyExc_KeyError, e.what());
  } catch (const RuntimeError& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (const Error& e) {
    PyErr_SetString(classes.error, e.what());
  } catch (const Interrupted&) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
}

}  // namespace

void bind_errors(nb::module_& m) {
  classes.error = error_class(m, "Error", "Root of Undertow's own errors.", PyExc_Exception, nullptr);
  classes.shape = error_class(m, "ShapeError", "Shapes do not fit.", classes.error, PyExc_ValueError);
  classes.data = error_class(m, "DataError", "The data pipeline failed.", classes.error, PyExc_RuntimeError);
  classes.format = error_class(m, "FormatError", "A file is not what it should be.", classes.error, PyExc_ValueError);
  classes.file = error_class(m, "FileError", "A file or folder is missing or cannot be used.", classes.error,
                             PyExc_FileNotFoundError);
  classes.device = error_class(m, "DeviceError", "A device is unknown or failed.", classes.error, PyExc_RuntimeError);
  classes.trace =
      error_class(m, "TraceError", "`construct` did what cannot be traced.", classes.error, PyExc_RuntimeError);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) { translate(p); });
}

void raise_current() noexcept {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(e.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_RuntimeError, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (...) {
    try {
      translate(std::current_exception());
    } catch (const std::exception& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
    } catch (...) {
      PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
    }
  }
}

}  // namespace undertow::python
