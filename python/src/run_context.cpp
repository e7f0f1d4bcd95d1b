// SPDX-License-Identifier: Apache-2.0
// RunContext and the parameters of a run, which read like a dict and like an object.
#include "python/src/run_context.h"

#include "python/src/cells.h"
#include "undertow/base/check.h"

namespace undertow::python {
namespace {

/// cb_params: the run's state by name, and whatever callbacks add to it.
struct ParamsObject {
  std::shared_ptr<ContextLink> link;
  nb::dict added;

  CallbackParams& get() const { return ContextObject(link).get().original_args(); }
};

nb::object dataset_object(const std::optional<data::Dataset>& d) {
  if (!d) return nb::none();
  return nb::module_::import_("undertow.dataset").attr("_wrap")(nb::cast(*d));
}

using Values = std::vector<std::pair<std::string, double>>;

nb::object values_object(const Values& values) {
  nb::dict d;
  for (const auto& [name, value] : values) d[name.c_str()] = value;
  return d;
}

/// The numbers of a dict; what is none stays with the Python object alone.
Values to_values(nb::handle object) {
  Values out;
  if (object.is_none()) return out;
  for (auto [key, item] : nb::cast<nb::dict>(object)) {
    double number = 0;
    if (!nb::try_cast(nb::handle(item), number)) {
      const nb::object plain = nb::steal(PyNumber_Float(item.ptr()));
      if (!plain.is_valid()) {
        PyErr_Clear();
        continue;
      }
      number = nb::cast<double>(plain);
    }
    out.emplace_back(nb::cast<std::string>(nb::str(key)), number);
  }
  return out;
}

using Reader = nb::object (*)(const CallbackParams&);
using Writer = void (*)(CallbackParams&, nb::handle);
struct Field {
  const char* name;
  Reader read;
  Writer write = nullptr;  // none: a written value stays with the Python object
  bool of_user = false;    // written in a run in progress too
};

/// A field that reads and writes a member of simple type.
template <auto member>
constexpr Writer kWrite =
    [](CallbackParams& p, nb::handle v) { p.*member = nb::cast<std::decay_t<decltype(p.*member)>>(v); };
constexpr Field kFields[] = {
    {"mode", [](const CallbackParams& p) { return nb::object(nb::cast(p.mode)); }, kWrite<&CallbackParams::mode>},
    {"cur_epoch_num", [](const CallbackParams& p) { return nb::object(nb::int_(p.cur_epoch_num)); },
     kWrite<&CallbackParams::cur_epoch_num>},
    {"epoch_num", [](const CallbackParams& p) { return nb::object(nb::int_(p.epoch_num)); },
     kWrite<&CallbackParams::epoch_num>},
    {"cur_step_num", [](const CallbackParams& p) { return nb::object(nb::int_(p.cur_step_num)); },
     kWrite<&CallbackParams::cur_step_num>},
    {"batch_num", [](const CallbackParams& p) { return nb::object(nb::int_(p.batch_num)); },
     kWrite<&CallbackParams::batch_num>},
    {"initial_step", [](const CallbackParams& p) { return nb::object(nb::int_(p.initial_step)); },
     kWrite<&CallbackParams::initial_step>},
    {"dataset_sink_mode", [](const CallbackParams& p) { return nb::object(nb::bool_(p.dataset_sink_mode)); },
     kWrite<&CallbackParams::dataset_sink_mode>},
    {"sink_size", [](const CallbackParams& p) { return nb::object(nb::int_(p.sink_size)); },
     kWrite<&CallbackParams::sink_size>},
    {"device_number", [](const CallbackParams& p) { return nb::object(nb::int_(p.device_number)); }},
    {"parallel_mode", [](const CallbackParams& p) { return nb::object(nb::cast(p.parallel_mode)); }},
    {"latest_ckpt_file", [](const CallbackParams& p) { return nb::object(nb::cast(p.latest_ckpt_file)); },
     kWrite<&CallbackParams::latest_ckpt_file>, true},
    {"last_save_ckpt_step", [](const CallbackParams& p) { return nb::object(nb::int_(p.last_save_ckpt_step)); },
     kWrite<&CallbackParams::last_save_ckpt_step>, true},
    {"network", [](const CallbackParams& p) { return nb::object(nb::cast(p.network)); },
     kWrite<&CallbackParams::network>},
    {"train_network", [](const CallbackParams& p) { return nb::object(nb::cast(p.train_network)); },
     kWrite<&CallbackParams::train_network>},
    {"eval_network", [](const CallbackParams& p) { return nb::object(nb::cast(p.eval_network)); },
     kWrite<&CallbackParams::eval_network>},
    {"loss_fn", [](const CallbackParams& p) { return nb::object(nb::cast(p.loss_fn)); },
     kWrite<&CallbackParams::loss_fn>},
    {"optimizer", [](const CallbackParams& p) { return nb::object(nb::cast(p.optimizer)); },
     kWrite<&CallbackParams::optimizer>},
    {"train_dataset", [](const CallbackParams& p) { return dataset_object(p.train_dataset); }},
    {"valid_dataset", [](const CallbackParams& p) { return dataset_object(p.valid_dataset); }},
    {"net_outputs", [](const CallbackParams& p) { return from_value(p.net_outputs); },
     [](CallbackParams& p, nb::handle v) { p.net_outputs = to_value(v); }},
    {"step_losses", [](const CallbackParams& p) { return nb::object(nb::cast(p.step_losses)); }},
    {"wait_seconds", [](const CallbackParams& p) { return nb::object(nb::float_(p.wait_seconds)); }},
    {"list_callback", [](const CallbackParams& p) { return nb::object(nb::cast(p.list_callback)); }},
    {"step_learning_rates", [](const CallbackParams& p) { return nb::object(nb::cast(p.step_learning_rates)); }},
    {"step_loss_scales", [](const CallbackParams& p) { return nb::object(nb::cast(p.step_loss_scales)); }},
    {"step_skipped", [](const CallbackParams& p) { return nb::object(nb::cast(p.step_skipped)); }},
    {"metrics", [](const CallbackParams& p) { return values_object(p.metrics); },
     [](CallbackParams& p, nb::handle v) { p.metrics = to_values(v); }, true},
    {"eval_results", [](const CallbackParams& p) { return values_object(p.eval_results); },
     [](CallbackParams& p, nb::handle v) { p.eval_results = to_values(v); }, true},
};

nb::object find(const ParamsObject& p, const std::string& name) {
  if (p.added.contains(name.c_str())) return nb::borrow(p.added[name.c_str()]);
  for (const Field& f : kFields)
    if (name == f.name) return f.read(p.get());
  return {};
}

nb::list names(const ParamsObject& p) {
  nb::list out;
  for (const Field& f : kFields) out.append(f.name);
  for (auto [key, _] : p.added)
    if (PySequence_Contains(out.ptr(), key.ptr()) == 0) out.append(key);
  return out;
}

void write(ParamsObject& p, const std::string& name, nb::handle value) {
  for (const Field& f : kFields) {
    if (name != f.name || !f.write || !(f.of_user || p.link->own_params)) continue;
    f.write(p.get(), value);
    const bool whole = !PyDict_Check(value.ptr()) || nb::len(f.read(p.get())) == nb::len(value);
    if (whole) {
      if (p.added.contains(name.c_str())) PyDict_DelItemString(p.added.ptr(), name.c_str());
      return;
    }
  }
  p.added[name.c_str()] = value;
}

nb::object pop(ParamsObject& p, const std::string& name, const nb::object& fallback) {
  const nb::object found = find(p, name);
  if (p.added.contains(name.c_str())) PyDict_DelItemString(p.added.ptr(), name.c_str());
  for (const Field& f : kFields)
    if (name == f.name && f.of_user && f.write) f.write(p.get(), nb::none());
  return found.is_valid() ? found : fallback;
}

std::shared_ptr<ContextLink> own_link() {
  auto link = std::make_shared<ContextLink>();
  link->own_params = std::make_unique<CallbackParams>();
  link->own_context = std::make_unique<RunContext>(link->own_params.get());
  link->context = link->own_context.get();
  return link;
}

/// RunContext(params) of a program that drives callbacks itself.
/// Gives the parameters' object, which must live as long as the context.
nb::object construct_context(ContextObject* self, nb::handle params) {
  nb::object given = nb::borrow(params);
  if (PyDict_Check(params.ptr())) {
    given = nb::cast(ParamsObject{own_link(), nb::dict()});
    for (auto [key, value] : nb::borrow<nb::dict>(params))
      write(*nb::inst_ptr<ParamsObject>(given), nb::cast<std::string>(nb::str(key)), value);
  }
  UNDERTOW_CHECK(nb::isinstance<ParamsObject>(given), TypeError,
                 "RunContext takes the run's parameters (a dict), got {}", type_name_of(params));
  auto link = std::make_shared<ContextLink>();
  link->own_context = std::make_unique<RunContext>(&nb::inst_ptr<ParamsObject>(given)->get());
  link->context = link->own_context.get();
  new (self) ContextObject(std::move(link));
  return given;
}

}  // namespace

RunContext& ContextObject::get() const {
  UNDERTOW_CHECK(link_->context, RuntimeError, "this RunContext belongs to a run that is over");
  return *link_->context;
}

nb::object ContextHolder::object_for(RunContext& context) {
  if (!link_) {
    link_ = std::make_shared<ContextLink>();
    object_ = nb::cast(ContextObject(link_));
  }
  link_->context = &context;
  return object_;
}

void ContextHolder::end() {
  if (link_) link_->context = nullptr;
  link_.reset();
  object_.reset();
}

void bind_run_context(nb::module_& m) {
  nb::class_<ContextObject>(m, "RunContext", nb::dynamic_attr(), "A run, as callbacks see it.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<ContextObject> self, nb::handle params) {
            self.h.attr("__dict__")["_params"] = construct_context(self.p, params);
          },
          "original_args"_a)
      .def(
          "original_args",
          [](nb::handle self) {
            // One object a run, so that what callbacks add to it stays.
            if (!nb::hasattr(self, "_params"))
              nb::setattr(self, "_params",
                          nb::cast(ParamsObject{nb::inst_ptr<ContextObject>(self)->link(), nb::dict()}));
            return self.attr("_params");
          },
          "The run's state: cur_epoch_num, cur_step_num, batch_num, net_outputs, network, ... by attribute or key.")
      .def(
          "request_stop", [](const ContextObject& c) { c.get().request_stop(); },
          "Ends the run at the next step border, or at the end of the command with the sink on.")
      .def("get_stop_requested", [](const ContextObject& c) { return c.get().get_stop_requested(); });
  nb::class_<ParamsObject>(m, "CallbackParams")
      .def("__init__", [](ParamsObject* self) { new (self) ParamsObject{own_link(), nb::dict()}; })
      .def("pop", &pop, "key"_a, "default"_a.none() = nb::none())
      .def("__getattr__",
           [](const ParamsObject& p, const std::string& name) {
             nb::object found = find(p, name);
             if (!found.is_valid()) throw nb::attribute_error(("the run's parameters have no '" + name + "'").c_str());
             return found;
           })
      .def("__getitem__",
           [](const ParamsObject& p, const std::string& name) {
             nb::object found = find(p, name);
             if (!found.is_valid()) throw nb::key_error(name.c_str());
             return found;
           })
      .def(
          "get",
          [](const ParamsObject& p, const std::string& name, const nb::object& fallback) {
            nb::object found = find(p, name);
            return found.is_valid() ? found : fallback;
          },
          "key"_a, "default"_a.none() = nb::none())
      .def("__setattr__", &write, "name"_a, "value"_a.none())
      .def("__setitem__", &write, "name"_a, "value"_a.none())
      .def("__contains__", [](const ParamsObject& p, const std::string& name) { return find(p, name).is_valid(); })
      .def("keys", &names)
      .def("__iter__", [](const ParamsObject& p) { return nb::iter(names(p)); })
      .def("__len__", [](const ParamsObject& p) { return nb::len(names(p)); });
}

}  // namespace undertow::python
