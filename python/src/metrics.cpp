// SPDX-License-Identifier: Apache-2.0
// Metrics: C++ ones, which are part of the evaluation step, and those that Python writes.
#include "python/src/cells.h"
#include "python/src/optim_args.h"
#include "undertow/base/check.h"
#include "undertow/train/metric.h"

namespace undertow::python {
namespace {

using nn::Metric;

/// A metric written in Python: update(*outputs), eval(), clear().
class PyMetric : public Metric {
 public:
  void clear() override { call("clear"); }
  void update(const nn::EvalBatch& batch) override {
    nb::gil_scoped_acquire gil;
    const nb::handle self = object();
    const nb::object indexes = nb::getattr(self, "_indexes", nb::none());
    nb::list args;
    if (!indexes.is_none()) {
      for (nb::handle i : indexes) args.append(wrap(batch.all.at(nb::cast<std::size_t>(i))));
    } else {
      args.append(wrap(batch.output));
      args.append(wrap(batch.label));
    }
    self.attr("update")(*args);
  }
  double eval() override {
    nb::gil_scoped_acquire gil;
    const nb::object value = object().attr("eval")();
    nb::setattr(object(), "_result", value);
    double number = 0;
    return nb::try_cast(value, number) ? number : 0;  // Model.eval takes _result
  }
  std::string cls_name() const override {
    nb::gil_scoped_acquire gil;
    return python_class_name(object().ptr());
  }

 private:
  nb::handle object() const { return static_cast<PyObject*>(self_py()); }
  void call(const char* name) {
    nb::gil_scoped_acquire gil;
    object().attr(name)();
  }
};

/// A metric of C++: update(output, label), or what set_indexes chooses of its arguments.
template <typename T>
nb::class_<T, Metric> metric_class(nb::module_& m, const char* name, const char* doc) {
  nb::class_<T, Metric> c(m, name, doc);
  c.def("clear", &T::clear);
  c.def("update", [](nb::handle self, const nb::args& args) {
    nb::object inputs = nb::borrow(args);
    if (const nb::object indexes = nb::getattr(self, "_indexes", nb::none()); !indexes.is_none()) {
      nb::list chosen;
      for (nb::handle i : indexes) chosen.append(args[nb::cast<std::size_t>(i)]);
      inputs = nb::tuple(chosen);
    }
    constexpr bool kOfLoss = std::is_same_v<T, nn::LossImpl>;
    constexpr std::size_t kTakes = kOfLoss ? 1 : 2;
    UNDERTOW_CHECK(nb::len(inputs) == kTakes, ValueError, "{}.update takes {}, got {} inputs", type_name_of(self),
                   kOfLoss ? "the loss" : "outputs and labels", nb::len(inputs));
    const auto convert = [](nb::handle o) { return unwrap(o) ? *unwrap(o) : to_tensor(o); };
    nn::EvalBatch b;
    (kOfLoss ? b.loss : b.output) = convert(inputs[0]);
    if (!kOfLoss) b.label = convert(inputs[1]);
    const Tensor& of_rows = kOfLoss ? b.loss : b.label;
    b.rows = of_rows.ndim() ? of_rows.shape(0) : 1;
    nb::inst_ptr<T>(self)->update(b);
  });
  if constexpr (std::is_base_of_v<nn::ClassRateImpl, T>) {
    c.def(
        "eval",
        [](T& self, bool average) -> nb::object {
          if (average) return nb::float_(self.eval());
          return nb::module_::import_("numpy").attr("array")(nb::cast(self.eval_classes()));
        },
        "average"_a = false, "One result a class, or their mean.");
  } else {
    c.def("eval", &T::eval);
  }
  return c;
}

// One Python class a C++ type.
template <bool squared>
struct Error : nn::ErrorImpl {
  Error() : ErrorImpl(squared) {}
};
template <nn::ClassRateImpl::Kind kind>
struct Rate : nn::ClassRateImpl {
  explicit Rate(double beta = 1) : ClassRateImpl(kind, beta) {}
};

void need_classification(const std::string& eval_type, const char* metric) {
  UNDERTOW_CHECK(eval_type == "classification", ValueError, "{}: eval_type '{}' is not supported; use classification",
                 metric, eval_type);
}

}  // namespace

void bind_metrics(nb::module_& m) {
  const auto abstract = [](const char* what) {
    return [what](nb::handle self, const nb::args&) {
      PyErr_Format(PyExc_NotImplementedError, "%s must define %s()", type_name_of(self).c_str(), what);
      throw nb::python_error();
    };
  };
  nb::class_<Metric, PyMetric> c(
      m, "Metric", nb::intrusive_ptr<Metric>([](Metric* o, PyObject* self) noexcept { o->set_self_py(self); }),
      nb::dynamic_attr(), "Base of metrics: derive from it and define clear(), update(output, label) and eval().");
  c.def(nb::init<>());
  c.def("clear", abstract("clear")).def("update", abstract("update")).def("eval", abstract("eval"));
  c.def("__call__", [](nb::handle self, const nb::args& args) {
    self.attr("clear")();
    self.attr("update")(*args);
    return self.attr("eval")();
  });
  c.def(
      "set_indexes",
      [](nb::handle self, nb::handle indexes) {
        bool fine = PyList_Check(indexes.ptr());
        if (fine)
          for (nb::handle i : nb::borrow<nb::list>(indexes)) fine = fine && PyLong_Check(i.ptr());
        UNDERTOW_CHECK(fine, ValueError, "set_indexes: 'indexes' must be a list of integers, got {}", repr_of(indexes));
        nb::setattr(self, "_indexes", nb::list(indexes));
        return nb::borrow(self);
      },
      "indexes"_a, "Which of (loss, output, label) update() gets.");
  c.def_prop_ro("indexes", [](nb::handle self) { return nb::getattr(self, "_indexes", nb::none()); });
  c.def(
      "_convert_data",
      [](const Metric&, nb::handle data) -> nb::object {
        if (const Tensor* t = unwrap(data)) return to_numpy(*t);
        const nb::object numpy = nb::module_::import_("numpy");
        UNDERTOW_CHECK(PyList_Check(data.ptr()) || nb::isinstance(data, numpy.attr("ndarray")), TypeError,
                       "a metric takes Tensors, lists and arrays, got {}", type_name_of(data));
        return numpy.attr("array")(data);
      },
      "data"_a);

  metric_class<nn::AccuracyImpl>(m, "Accuracy", "Share of rows whose largest output is at the label.")
      .def(nb::init<const std::string&>(), "eval_type"_a = "classification");
  metric_class<nn::LossImpl>(m, "Loss", "Mean loss over rows; called by itself, over its calls.").def(nb::init<>());
  metric_class<Error<false>>(m, "MAE", "Sum of |output - label|, over rows.").def(nb::init<>());
  metric_class<Error<true>>(m, "MSE", "Sum of (output - label)^2, over rows.").def(nb::init<>());
  using nn::ClassRateImpl;
  metric_class<Rate<ClassRateImpl::kPrecision>>(m, "Precision", "Right among those predicted, for each class.")
      .def(
          "__init__",
          [](Rate<ClassRateImpl::kPrecision>* self, const std::string& eval_type) {
            need_classification(eval_type, "Precision");
            new (self) Rate<ClassRateImpl::kPrecision>();
          },
          "eval_type"_a = "classification");
  metric_class<Rate<ClassRateImpl::kRecall>>(m, "Recall", "Found among those there are, for each class.")
      .def(
          "__init__",
          [](Rate<ClassRateImpl::kRecall>* self, const std::string& eval_type) {
            need_classification(eval_type, "Recall");
            new (self) Rate<ClassRateImpl::kRecall>();
          },
          "eval_type"_a = "classification");
  metric_class<Rate<ClassRateImpl::kFbeta>>(m, "Fbeta", "(1 + beta^2) P R / (beta^2 P + R), for each class.")
      .def(nb::init<double>(), "beta"_a);
  metric_class<nn::TopKCategoricalAccuracyImpl>(m, "TopKCategoricalAccuracy",
                                                "Share of rows whose label is among the k largest outputs.")
      .def(
          "__init__",
          [](nn::TopKCategoricalAccuracyImpl* self, nb::handle k) {
            new (self) nn::TopKCategoricalAccuracyImpl(to_int(k, "TopKCategoricalAccuracy", "k"));
          },
          "k"_a);
  metric_class<nn::PerplexityImpl>(m, "Perplexity", "e^(mean of -log p(label)).")
      .def(
          "__init__",
          [](nn::PerplexityImpl* self, nb::handle ignore) {
            if (ignore.is_none()) new (self) nn::PerplexityImpl();
            else new (self) nn::PerplexityImpl(to_int(ignore, "Perplexity", "ignore_label"));
          },
          "ignore_label"_a.none() = nb::none());
}

}  // namespace undertow::python
