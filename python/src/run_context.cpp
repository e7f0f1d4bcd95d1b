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

using Reader = nb::object (*)(const CallbackParams&);
struct Field {
  const char* name;
  Reader read;
};
constexpr Field kFields[] = {
    {"mode", [](const CallbackParams& p) { return nb::object(nb::cast(p.mode)); }},
    {"cur_epoch_num", [](const CallbackParams& p) { return nb::object(nb::int_(p.cur_epoch_num)); }},
    {"epoch_num", [](const CallbackParams& p) { return nb::object(nb::int_(p.epoch_num)); }},
    {"cur_step_num", [](const CallbackParams& p) { return nb::object(nb::int_(p.cur_step_num)); }},
    {"batch_num", [](const CallbackParams& p) { return nb::object(nb::int_(p.batch_num)); }},
    {"initial_step", [](const CallbackParams& p) { return nb::object(nb::int_(p.initial_step)); }},
    {"dataset_sink_mode", [](const CallbackParams& p) { return nb::object(nb::bool_(p.dataset_sink_mode)); }},
    {"sink_size", [](const CallbackParams& p) { return nb::object(nb::int_(p.sink_size)); }},
    {"device_number", [](const CallbackParams& p) { return nb::object(nb::int_(p.device_number)); }},
    {"parallel_mode", [](const CallbackParams& p) { return nb::object(nb::cast(p.parallel_mode)); }},
    {"latest_ckpt_file", [](const CallbackParams& p) { return nb::object(nb::cast(p.latest_ckpt_file)); }},
    {"last_save_ckpt_step", [](const CallbackParams& p) { return nb::object(nb::int_(p.last_save_ckpt_step)); }},
    {"network", [](const CallbackParams& p) { return nb::object(nb::cast(p.network)); }},
    {"train_network", [](const CallbackParams& p) { return nb::object(nb::cast(p.train_network)); }},
    {"eval_network", [](const CallbackParams& p) { return nb::object(nb::cast(p.eval_network)); }},
    {"loss_fn", [](const CallbackParams& p) { return nb::object(nb::cast(p.loss_fn)); }},
    {"optimizer", [](const CallbackParams& p) { return nb::object(nb::cast(p.optimizer)); }},
    {"train_dataset", [](const CallbackParams& p) { return dataset_object(p.train_dataset); }},
    {"valid_dataset", [](const CallbackParams& p) { return dataset_object(p.valid_dataset); }},
    {"net_outputs", [](const CallbackParams& p) { return from_value(p.net_outputs); }},
    {"step_losses", [](const CallbackParams& p) { return nb::object(nb::cast(p.step_losses)); }},
    {"wait_seconds", [](const CallbackParams& p) { return nb::object(nb::float_(p.wait_seconds)); }},
    {"list_callback", [](const CallbackParams& p) { return nb::object(nb::cast(p.list_callback)); }},
    {"metrics",
     [](const CallbackParams& p) {
       nb::dict d;
       for (const auto& [name, value] : p.metrics) d[name.c_str()] = value;
       return nb::object(d);
     }},
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
      .def(
          "__setattr__", [](ParamsObject& p, const std::string& name, nb::handle v) { p.added[name.c_str()] = v; },
          "name"_a, "value"_a.none())
      .def(
          "__setitem__", [](ParamsObject& p, const std::string& name, nb::handle v) { p.added[name.c_str()] = v; },
          "name"_a, "value"_a.none())
      .def("__contains__", [](const ParamsObject& p, const std::string& name) { return find(p, name).is_valid(); })
      .def("keys", &names)
      .def("__iter__", [](const ParamsObject& p) { return nb::iter(names(p)); })
      .def("__len__", [](const ParamsObject& p) { return nb::len(names(p)); });
}

}  // namespace undertow::python
