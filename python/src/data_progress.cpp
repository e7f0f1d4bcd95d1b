// SPDX-License-Identifier: Apache-2.0
// How far a dataset has got, where its time goes, and who is told: positions, profiles, callbacks, sync_wait.
#include "python/src/data_sources.h"

namespace undertow::python {
namespace {

using data::Dataset;
using data::DSCallback;
using data::DSRunContext;
using data::Profile;
using data::StageProfile;
using NoGil = nb::call_guard<nb::gil_scoped_release>;

/// A Python object with the methods of DSCallback; those that its class leaves as they are cost nothing.
class PythonCallback final : public DSCallback {
 public:
  explicit PythonCallback(const nb::object& object)
      : DSCallback(nb::cast<std::int64_t>(object.attr("step_size"))), object_(object) {
    const nb::object base = nb::module_::import_("undertow.dataset.callback").attr("DSCallback");
    for (std::size_t i = 0; i < std::size(kNames); ++i)
      wanted_[i] = !object.type().attr(kNames[i]).is(base.attr(kNames[i]));
  }
  void ds_begin(const DSRunContext& c) override { call(0, c); }
  void ds_epoch_begin(const DSRunContext& c) override { call(1, c); }
  void ds_epoch_end(const DSRunContext& c) override { call(2, c); }
  void ds_step_begin(const DSRunContext& c) override { call(3, c); }
  void ds_step_end(const DSRunContext& c) override { call(4, c); }

 private:
  static constexpr const char* kNames[] = {"ds_begin", "ds_epoch_begin", "ds_epoch_end", "ds_step_begin",
                                           "ds_step_end"};
  void call(std::size_t hook, const DSRunContext& context) {
    if (!wanted_[hook]) return;
    const nb::gil_scoped_acquire gil;
    object_.get().attr(kNames[hook])(context);  // a copy, which the callback may keep
  }
  SharedObject object_;
  bool wanted_[std::size(kNames)];
};

}  // namespace

std::vector<std::shared_ptr<DSCallback>> python_callbacks(const nb::list& callbacks) {
  std::vector<std::shared_ptr<DSCallback>> out;
  for (nb::handle c : callbacks) out.push_back(std::make_shared<PythonCallback>(nb::borrow<nb::object>(c)));
  return out;
}

void bind_progress(nb::module_& m, nb::class_<Dataset>& dataset) {
  nb::class_<data::Position>(m, "Position")
      .def(nb::init<std::uint64_t, std::int64_t, std::int64_t>())
      .def_ro("seed", &data::Position::seed)
      .def_ro("epoch", &data::Position::epoch)
      .def_ro("batch", &data::Position::batch);
  nb::class_<StageProfile>(m, "StageProfile", "A source, a map (with what it fuses) or a batch.")
      .def_ro("name", &StageProfile::name)
      .def_ro("samples", &StageProfile::samples, "Rows that went through it.")
      .def_ro("seconds", &StageProfile::seconds, "Spent on them, all workers together.")
      .def_ro("workers", &StageProfile::workers, "That may work on it at once.")
      .def_ro("seconds_per_sample", &StageProfile::seconds_per_sample, "Of one worker.")
      .def_ro("samples_per_second", &StageProfile::samples_per_second, "That it could give alone, with its workers.")
      .def_ro("share", &StageProfile::share, "Of the time of all stages, 0 to 1.");
  nb::class_<Profile>(m, "Profile", "Where a pipeline's time goes; str() is a table.")
      .def_ro("stages", &Profile::stages, "In the order of the data.")
      .def_ro("batches", &Profile::batches, "Made; without batch(): rows.")
      .def_ro("seconds", &Profile::seconds, "That the pipeline ran.")
      .def_ro("wait_seconds", &Profile::wait_seconds, "That its consumer waited for data.")
      .def_ro("queue_depth", &Profile::queue_depth, "Batches that lay ready, on average.")
      .def_ro("queue_size", &Profile::queue_size, "Batches that there is room for.")
      .def_ro("bottleneck", &Profile::bottleneck, "One sentence.")
      .def("__str__", &Profile::str)
      .def("__repr__", &Profile::str);
  nb::class_<DSRunContext>(m, "DSRunContext", "Where a map operation stands; epochs and steps count from 1.")
      .def_ro("cur_epoch_num", &DSRunContext::cur_epoch_num)
      .def_ro("cur_step_num_in_epoch", &DSRunContext::cur_step_num_in_epoch)
      .def_ro("cur_step_num", &DSRunContext::cur_step_num)
      .def_prop_ro(
          "_stopping", [](const DSRunContext& c) { return c.stop && c.stop->load(std::memory_order_relaxed); },
          "Whether the pipeline is to end; for the call that it was given to.");
  dataset.def("state", &Dataset::state)
      .def("load_state", &Dataset::load_state)
      .def("profile", &Dataset::profile, NoGil())
      .def("last_profile", &Dataset::last_profile)
      .def(
          "sync_wait",
          [](const Dataset& d, const std::string& name, std::int64_t batches, const nb::object& callback) {
            if (callback.is_none()) return d.sync_wait(name, batches);
            const auto f = std::make_shared<SharedObject>(callback);
            return d.sync_wait(name, batches, [f](const void* data) {
              f->get()(nb::handle(static_cast<PyObject*>(const_cast<void*>(data))));
            });
          },
          "name"_a, "batches"_a, "callback"_a.none())
      .def(
          "sync_update",
          [](const Dataset& d, const std::string& name, std::int64_t batches, nb::handle data) {
            d.sync_update(name, batches, data.ptr());  // calls the callback here, with the GIL
          },
          "name"_a, "batches"_a, "data"_a.none());
}

}  // namespace undertow::python
