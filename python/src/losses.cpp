// SPDX-License-Identifier: Apache-2.0
// nn: losses; and initializers as recipes.
#include "python/src/bind_layer.h"
#include "undertow/train/layers.h"
#include "undertow/train/loss.h"
#include "undertow/train/sequence_loss.h"

namespace undertow::python {
namespace {

namespace fn = nn::fn;
using common::Init;

template <typename F, typename... Fields>
void bind_loss(nb::module_& m, const char* doc, Fields... fields) {
  bind_function<F, nn::LossBase>(m, doc, fields...);
}

#define REDUCTION(F) field("reduction", &fn::F::reduction)

void bind_pair_losses(nb::module_& m) {
  bind_loss<fn::MSELoss>(m, "(logits - labels)^2, reduced.", REDUCTION(MSELoss));
  bind_loss<fn::L1Loss>(m, "|logits - labels|, reduced.", REDUCTION(L1Loss));
  bind_loss<fn::MAELoss>(m, "|logits - labels|, reduced.", REDUCTION(MAELoss));
  bind_loss<fn::RMSELoss>(m, "The square root of the mean of (logits - labels)^2.");
  bind_loss<fn::SmoothL1Loss>(m, "d^2 / (2 beta) where d = |logits - labels| < beta, else d - beta / 2.",
                              field("beta", &fn::SmoothL1Loss::beta), REDUCTION(SmoothL1Loss));
  bind_loss<fn::HuberLoss>(m, "d^2 / 2 where d < delta, else delta (d - delta / 2).", REDUCTION(HuberLoss),
                           field("delta", &fn::HuberLoss::delta));
  bind_loss<fn::SoftMarginLoss>(m, "log(1 + exp(-labels logits)), labels 1 and -1.", REDUCTION(SoftMarginLoss));
  bind_loss<fn::HingeEmbeddingLoss>(m, "logits where labels are 1, max(margin - logits, 0) where -1.",
                                    field("margin", &fn::HingeEmbeddingLoss::margin), REDUCTION(HingeEmbeddingLoss));
  bind_loss<fn::PoissonNLLLoss>(m, "exp(x) - target x with log_input, else x - target log(x + eps).",
                                field("log_input", &fn::PoissonNLLLoss::log_input),
                                field("full", &fn::PoissonNLLLoss::full), field("eps", &fn::PoissonNLLLoss::eps),
                                REDUCTION(PoissonNLLLoss));
  bind_loss<fn::KLDivLoss>(m, "labels (log labels - logits); also reduction 'batchmean'.", REDUCTION(KLDivLoss));
  bind_loss<fn::DiceLoss>(m, "1 - 2 sum(x t) / (sum(x^2) + sum(t^2) + smooth)", field("smooth", &fn::DiceLoss::smooth));
  bind_loss<fn::MarginRankingLoss>(m, "max(-target (input1 - input2) + margin, 0)",
                                   field("margin", &fn::MarginRankingLoss::margin), REDUCTION(MarginRankingLoss));
  bind_loss<fn::CosineEmbeddingLoss>(m, "1 - cos where labels are 1, max(cos - margin, 0) where -1.",
                                     field("margin", &fn::CosineEmbeddingLoss::margin), REDUCTION(CosineEmbeddingLoss));
  bind_loss<fn::TripletMarginLoss>(m, "max(d(x, positive) - d(x, negative) + margin, 0)",
                                   field("p", &fn::TripletMarginLoss::p), field("swap", &fn::TripletMarginLoss::swap),
                                   field("eps", &fn::TripletMarginLoss::eps), REDUCTION(TripletMarginLoss),
                                   field("margin", &fn::TripletMarginLoss::margin));
  // Its options are keyword-only in MindSpore; here they may also stand in this order.
  bind_loss<fn::GaussianNLLLoss>(m, "(log var + (logits - labels)^2 / var) / 2, var at least eps.",
                                 field("full", &fn::GaussianNLLLoss::full), field("eps", &fn::GaussianNLLLoss::eps),
                                 REDUCTION(GaussianNLLLoss));
}

void bind_class_losses(nb::module_& m) {
  bind_loss<fn::SoftmaxCrossEntropyWithLogits>(
      m,
      "Cross entropy of logits (N, C): with class ids (N,) if `sparse`, else probabilities (N, C). The reduction is "
      "'none' unless told, and training then follows the gradient of the sum.",
      field("sparse", &fn::SoftmaxCrossEntropyWithLogits::sparse), REDUCTION(SoftmaxCrossEntropyWithLogits));
  bind_loss<fn::CrossEntropyLoss>(
      m, "Cross entropy of logits (N, C, ...) with class ids (N, ...) of any integer type, or probabilities.",
      field("weight", &fn::CrossEntropyLoss::weight), field("ignore_index", &fn::CrossEntropyLoss::ignore_index),
      REDUCTION(CrossEntropyLoss), field("label_smoothing", &fn::CrossEntropyLoss::label_smoothing));
  bind_loss<fn::NLLLoss>(m, "Negative log likelihood of log probabilities (N, C, ...) with class ids (N, ...).",
                         field("weight", &fn::NLLLoss::weight), field("ignore_index", &fn::NLLLoss::ignore_index),
                         REDUCTION(NLLLoss));
  bind_loss<fn::BCELoss>(m, "Binary cross entropy of probabilities.", field("weight", &fn::BCELoss::weight),
                         REDUCTION(BCELoss));
  bind_loss<fn::BCEWithLogitsLoss>(m, "Binary cross entropy of sigmoid(input), without overflow.",
                                   REDUCTION(BCEWithLogitsLoss), field("weight", &fn::BCEWithLogitsLoss::weight),
                                   field("pos_weight", &fn::BCEWithLogitsLoss::pos_weight));
  bind_loss<fn::FocalLoss>(m, "-(1 - p)^gamma log p of the labels' classes.", field("weight", &fn::FocalLoss::weight),
                           field("gamma", &fn::FocalLoss::gamma), REDUCTION(FocalLoss));
  bind_loss<fn::MultiMarginLoss>(m, "Mean over the other classes of max(margin - x[target] + x[j], 0)^p.",
                                 field("p", &fn::MultiMarginLoss::p), field("margin", &fn::MultiMarginLoss::margin),
                                 REDUCTION(MultiMarginLoss), field("weight", &fn::MultiMarginLoss::weight));
  bind_loss<fn::MultilabelMarginLoss>(m, "Margins of all target classes over all others.",
                                      REDUCTION(MultilabelMarginLoss));
  bind_loss<fn::MultiLabelSoftMarginLoss>(m, "Binary cross entropy with logits, averaged over the classes.",
                                          field("weight", &fn::MultiLabelSoftMarginLoss::weight),
                                          REDUCTION(MultiLabelSoftMarginLoss));
}

void bind_sequence_losses(nb::module_& m) {
  bind_loss<fn::CTCLoss>(m,
                         "Connectionist temporal classification of log_probs (T, N, C) with targets (N, S) and the "
                         "lengths of both, (N,).",
                         field("blank", &fn::CTCLoss::blank), REDUCTION(CTCLoss),
                         field("zero_infinity", &fn::CTCLoss::zero_infinity));
  using Sampled = fn::SampledSoftmaxLoss;
  cell_class<nn::FunctionCell<Sampled, nn::LossBase>, nn::LossBase>(
      m, Sampled::kName,
      "Softmax cross entropy against `num_sampled` drawn classes: called with weights (C, dim), biases (C,), labels "
      "(N, num_true) and logits (N, dim).")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::FunctionCell<Sampled, nn::LossBase>> self, std::int64_t sampled,
             std::int64_t classes, std::int64_t truth, const nb::object& values, bool remove, std::int64_t seed,
             const std::string& reduction) {
            Sampled f{sampled, classes, truth, {}, remove, seed, reduction};
            if (!values.is_none())
              for (nb::handle v : values) f.sampled_values.push_back(to_tensor(v));
            construct_cell(self, f);
          },
          "num_sampled"_a, "num_classes"_a, "num_true"_a = 1, "sampled_values"_a = nb::none(),
          "remove_accidental_hits"_a = true, "seed"_a = 0, "reduction"_a = "none");
  cell_class<nn::MultiClassDiceLossCell, nn::LossBase>(
      m, "MultiClassDiceLoss", "Mean over the classes (axis 1) of DiceLoss, times weights (classes, dim).")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::MultiClassDiceLossCell> self, const nb::object& weights,
             std::optional<std::int64_t> ignore, const ActivationArg& activation) {
            construct_cell(self, nn::MultiClassDiceLossOptions{PyArg<Tensor>::get(weights, "weights"), ignore,
                                                               activation.activation});
          },
          "weights"_a = nb::none(), "ignore_indiex"_a = nb::none(), "activation"_a.none() = "softmax");
}

#undef REDUCTION

Init init_call(const std::string& name, double a, double b, double c, double d) {
  if (name == "Constant") return common::Constant(a);
  if (name == "Normal") return common::Normal(a, b);
  if (name == "Uniform") return common::Uniform(a);
  if (name == "TruncatedNormal") return common::TruncatedNormal(a, b, c, d);
  if (name == "XavierUniform") return common::XavierUniform(a);
  if (name == "XavierNormal") return common::XavierNormal(a);
  if (name == "Sparse") return common::Sparse(a, b);
  if (name == "Dirac") return common::Dirac(static_cast<std::int64_t>(a));
  if (name == "Orthogonal") return common::Orthogonal(a);
  return Init(name);
}

void bind_initializers(nb::module_& m) {
  [[maybe_unused]] const nb::class_<Init> recipe(m, "Init");
  m.def("_init", &init_call, "name"_a, "a"_a = 0.0, "b"_a = 0.0, "c"_a = 0.0, "d"_a = 0.0);
  m.def("_init_he", [](bool normal, double slope, const std::string& mode, const std::string& nonlinearity) {
    return normal ? common::HeNormal(slope, mode, nonlinearity) : common::HeUniform(slope, mode, nonlinearity);
  });
  m.def("_init_variance", &common::VarianceScaling, "scale"_a, "mode"_a, "distribution"_a);
  // Written in Python: the function fills the array that it gets.
  m.def("_init_function", [](nb::object fill) { return Init([fill](const Tensor& t) { fill(numpy_view(t)); }); });
  m.def(
      "_initializer",
      [](const InitArg& init, const Shape& shape, DType dtype) { return common::initializer(init.init, shape, dtype); },
      "init"_a, "shape"_a, "dtype"_a);
  m.def("_fans", [](const Shape& s) { return common::fan_in_and_fan_out(s); });
  m.def("_gain", &common::gain_of, "nonlinearity"_a, "negative_slope"_a = 0.01);
}

}  // namespace

InitArg to_init(nb::handle o) {
  if (o.is_none()) return {};
  if (nb::isinstance<Init>(o)) return {*nb::inst_ptr<Init>(o)};
  if (const Tensor* t = unwrap(o)) return {Init(*t)};
  if (nb::isinstance<nb::str>(o)) return {Init(nb::cast<std::string>(o))};
  if (nb::hasattr(o, "_recipe")) return to_init(o.attr("_recipe"));
  if (PyObject_CheckBuffer(o.ptr()) && !PyFloat_Check(o.ptr())) return {Init(to_tensor(o))};
  if (!PyBool_Check(o.ptr()) && PyNumber_Check(o.ptr())) return {Init(nb::cast<double>(nb::float_(o)))};
  throw TypeError(
      fmt::format("an initializer is a name, a number, a Tensor or an Initializer, not {}", type_name_of(o)));
}

ActivationArg to_activation(nb::handle o) {
  if (o.is_none()) return {};
  if (nb::isinstance<nb::str>(o)) return {nn::Activation(nb::cast<std::string>(o))};
  if (nb::isinstance<nn::Cell>(o)) return {nn::Activation(Ref<nn::Cell>(nb::inst_ptr<nn::Cell>(o)))};
  if (PyCallable_Check(o.ptr())) {  // a function, or the class form of an op
    const nb::object wrapped = nb::module_::import_("undertow.nn.function_cell").attr("FunctionCell")(o);
    return {nn::Activation(Ref<nn::Cell>(nb::inst_ptr<nn::Cell>(wrapped)))};
  }
  throw TypeError(fmt::format("an activation is a name, a Cell or a function, not {}", type_name_of(o)));
}

void bind_losses(nb::module_& m, nb::module_& layers) {
  bind_initializers(m);
  auto base =
      cell_class<nn::LossBase, nn::Cell>(layers, "LossBase", "Base of losses: get_loss() applies the reduction.");
  base.def(
      "__init__",
      [](nb::pointer_and_handle<nn::LossBase> self, const std::string& r) {
        construct_cell(self, r);
        nb::setattr(self.h, "reduction", nb::cast(r));
        nb::setattr(self.h, "reduce", nb::cast(r != "none"));
        nb::setattr(self.h, "average", nb::cast(r != "sum"));
      },
      "reduction"_a = "mean");
  base.def(
      "get_loss",
      [](const nn::LossBase& self, const Tensor& x, nb::handle weights) {
        if (const Tensor* t = unwrap(weights)) return self.get_loss(x, *t);
        const double v = nb::cast<double>(nb::float_(weights));
        return self.get_loss(x, v == 1 ? Tensor() : ops::constant(v, DType::kFloat32));
      },
      "x"_a, "weights"_a = 1.0, "x times the weights, reduced.");
  base.def(
      "get_axis",
      [](const nn::LossBase&, const Tensor& x) {
        nb::list axes;
        for (int d = 0; d < x.ndim(); ++d) axes.append(d);
        return nb::tuple(axes);
      },
      "x"_a, "All axes of x.");
  bind_pair_losses(layers);
  bind_class_losses(layers);
  bind_sequence_losses(layers);
}

}  // namespace undertow::python
