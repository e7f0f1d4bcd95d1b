// SPDX-License-Identifier: Apache-2.0
// Control flow and printing: functions over flat lists of tensors. Trees of values are Python's part
// (undertow/_control.py, undertow/_print.py).
#include "python/src/control.h"

#include "undertow/base/check.h"
#include "undertow/ops/control.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/print.h"

namespace undertow::python {
namespace {

using ops::Tensors;

Tensors as_tensors(nb::handle result) { return nb::cast<Tensors>(result); }

nb::tuple from_scan(const ops::ScanResult& r) { return nb::make_tuple(nb::cast(r.carry), nb::cast(r.ys)); }

ops::Branch branch(const nb::callable& f) {
  return [f](const Tensors& args) { return as_tensors(f(args)); };
}
ops::IndexedBody indexed(const nb::callable& f) {
  return [f](const Tensor& i, const Tensors& carry) { return as_tensors(f(i, carry)); };
}

ops::ScanOptions scan_options(std::vector<bool> weak, std::int64_t length = -1, bool reverse = false) {
  ops::ScanOptions o;
  o.weak = std::move(weak);
  o.length = length;
  o.reverse = reverse;
  return o;
}

/// Through sys.stdout, wherever it leads at the moment.
void write_print(const ops::PrintRecord& record) {
  if (!Py_IsInitialized()) return;
  nb::gil_scoped_acquire gil;
  const std::string text =
      ops::print_text(record, [](const Tensor& t) { return nb::cast<std::string>(nb::str(to_numpy(t))); });
  const nb::object out = nb::module_::import_("sys").attr("stdout");
  if (out.is_none()) return;
  out.attr("write")(text);
  if (record.flush) out.attr("flush")();
}

// Guarded by the GIL.
int print_depth = 0;
PyObject *print_before = nullptr, *print_here = nullptr;

}  // namespace

PrintScope::PrintScope() : swaps_(ops::dispatcher().compiling()) {
  if (!swaps_ || print_depth++ > 0) return;
  const nb::object builtins = nb::module_::import_("builtins");
  print_before = nb::object(builtins.attr("print")).release().ptr();
  print_here = nb::object(nb::module_::import_("undertow._print").attr("_replacement")(nb::handle(print_before)))
                   .release()
                   .ptr();
  builtins.attr("print") = nb::handle(print_here);
}

PrintScope::~PrintScope() {
  if (!swaps_ || --print_depth > 0) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  try {
    const nb::object builtins = nb::module_::import_("builtins");
    if (nb::object(builtins.attr("print")).is(nb::handle(print_here)))
      builtins.attr("print") = nb::handle(print_before);
  } catch (...) {  // an interpreter that ends
    PyErr_Clear();
  }
  Py_CLEAR(print_before);
  Py_CLEAR(print_here);
  PyErr_Restore(type, value, traceback);
}

void bind_control(nb::module_& m) {
  ops::set_print_writer(&write_print);
  m.def("_records", [] { return ops::dispatcher().compiling(); });
  m.def("_control_key", [] { return ops::dispatcher().control_key(); });
  m.def("_enter", [](std::uint64_t key, int which, std::int64_t trip) { ops::dispatcher().enter(key, which, trip); });
  m.def("_leave", [] { ops::dispatcher().leave(); });
  m.def("_cond", [](const Tensor& pred, const nb::callable& yes, const nb::callable& no, const Tensors& operands) {
    return ops::cond(pred, branch(yes), branch(no), operands);
  });
  m.def("_while_loop",
        [](const nb::callable& condition, const nb::callable& body, const Tensors& init, std::vector<bool> weak) {
          ops::LoopOptions options;
          options.weak = std::move(weak);
          return ops::while_loop([condition](const Tensors& args) { return nb::cast<Tensor>(condition(args)); },
                                 branch(body), init, options);
        });
  m.def("_scan", [](const nb::callable& body, const Tensors& init, const Tensors& xs, std::int64_t length, bool reverse,
                    std::vector<bool> weak) {
    const auto step = [body](const Tensors& carry, const Tensors& x) {
      const nb::tuple result(body(carry, x));
      return ops::ScanResult{as_tensors(result[0]), as_tensors(result[1])};
    };
    return from_scan(ops::scan(step, init, xs, scan_options(std::move(weak), length, reverse)));
  });
  m.def("_fori_loop",
        [](nb::handle lower, nb::handle upper, const nb::callable& body, const Tensors& init, std::vector<bool> weak) {
          const Tensor *first = unwrap(lower), *end = unwrap(upper);
          if (!first && !end)
            return ops::fori_loop(nb::cast<std::int64_t>(lower), nb::cast<std::int64_t>(upper), indexed(body), init,
                                  scan_options(std::move(weak)));
          return ops::fori_loop(first ? *first : to_tensor(lower), end ? *end : to_tensor(upper), indexed(body), init,
                                scan_options(std::move(weak)));
        });
  m.def("_print", [](nb::handle items, const std::string& separator, const std::string& end, bool flush) {
    std::vector<ops::Printed> all;
    for (nb::handle i : items) {
      if (const Tensor* t = unwrap(i)) all.emplace_back(*t);
      else all.emplace_back(nb::cast<std::string>(i));
    }
    ops::print_(all, separator, end, flush);
  });
}

}  // namespace undertow::python
