// SPDX-License-Identifier: Apache-2.0
// Python in worker processes: forking, exceptions, random draws.
#include "python/src/data_draws.h"
#include "undertow/data/processes.h"

namespace undertow::python {
namespace {

bool worker_process = false;
PyGILState_STATE forking;  // of the thread that forks, which holds the GIL meanwhile

nb::module_ helpers() { return nb::module_::import_("undertow.dataset._processes"); }

/// Both modules' functions, looked up once.
struct Generators {
  nb::object numpy = nb::module_::import_("numpy").attr("random"), python = nb::module_::import_("random");
  nb::object numpy_seed = numpy.attr("seed"), python_seed = python.attr("seed");
  nb::object numpy_state = numpy.attr("get_state"), python_state = python.attr("getstate");
  nb::object set_numpy = numpy.attr("set_state"), set_python = python.attr("setstate");
};
const Generators& generators() {
  static const auto* g = new Generators;
  return *g;
}

void before_fork() {
  forking = PyGILState_Ensure();
  try {
    helpers().attr("before_fork")();  // imported here, so that a worker finds it
  } catch (nb::python_error& e) {
    e.discard_as_unraisable("forking a worker process");
  }
  PyOS_BeforeFork();
}

void after_fork_in_parent() {
  PyOS_AfterFork_Parent();
  PyGILState_Release(forking);
}

void after_fork_in_child() {
  PyOS_AfterFork_Child();
  worker_process = true;
  try {
    helpers().attr("in_worker")();
  } catch (nb::python_error& e) {
    e.discard_as_unraisable("starting a worker process");
  }
  PyEval_SaveThread();  // each row takes the GIL for itself
}

std::optional<std::string> pack(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (nb::python_error& e) {
    const nb::gil_scoped_acquire gil;
    const auto bytes = nb::cast<nb::bytes>(helpers().attr("pack_exception")(e.value()));
    return std::string(bytes.c_str(), bytes.size());
  } catch (...) {
    return std::nullopt;
  }
}

void rethrow(const std::string& packed) {
  const nb::gil_scoped_acquire gil;
  const nb::object error = helpers().attr("unpack_exception")(nb::bytes(packed.data(), packed.size()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

}  // namespace

void seed_generators(const data::RowContext& context) {
  const Generators& g = generators();
  const auto seed = context.random().next();
  g.numpy_seed(seed);
  g.python_seed(seed);
}

nb::object generator_states() {
  const nb::object numpy = generators().numpy_state();
  // The array is compared as bytes: == of arrays gives an array.
  return nb::make_tuple(numpy[0], numpy[1].attr("tobytes")(), numpy[2], numpy[3], numpy[4],
                        generators().python_state());
}

void set_generator_states(const nb::object& s) {
  const nb::object keys = nb::module_::import_("numpy").attr("frombuffer")(s[1], "uint32");
  generators().set_numpy(nb::make_tuple(s[0], keys, s[2], s[3], s[4]));
  generators().set_python(s[5]);
}

bool in_worker_process() { return worker_process; }

void set_python_fork_hooks() {
  data::set_fork_hooks({before_fork, after_fork_in_parent, after_fork_in_child, pack, rethrow});
}

}  // namespace undertow::python
