// SPDX-License-Identifier: Apache-2.0
// nn: the optimizers, with MindSpore's argument names and defaults.
#include "python/src/optim_args.h"
#include "undertow/base/check.h"
#include "undertow/train/optim_adaptive.h"
#include "undertow/train/optim_more.h"

namespace undertow::python {
namespace {

template <typename T>
using Self = nb::pointer_and_handle<T>;
using Py = nb::handle;

template <typename T>
nb::class_<T, nn::OptimizerCell, PyCell<T>> optimizer_class(nb::module_& m, const char* name, const char* doc) {
  return cell_class<T, nn::OptimizerCell>(m, name, doc);
}

/// Constructs T from parameters and options.
template <typename T, typename Options, typename... More>
void make(const Self<T>& self, const char* name, Py params, const Options& options, const More&... more) {
  construct_optimizer(self, [&] { construct_plain(self, to_params(params, name), options, more...); });
}

nn::Rate rate(Py lr, const char* name) { return to_rate(lr, name, "learning_rate"); }
nn::Rate decay(Py wd, const char* name) { return to_rate(wd, name, "weight_decay"); }

void bind_sgd(nb::module_& m) {
  optimizer_class<nn::SGDCell>(m, "SGD", "v = momentum v + (1 - dampening) g; w -= learning_rate v.")
      .def(
          "__init__",
          [](Self<nn::SGDCell> self, Py params, Py lr, double momentum, double dampening, Py wd, bool nesterov,
             double scale) {
            make(self, "SGD", params,
                 nn::SGDOptions{rate(lr, "SGD"), momentum, dampening, decay(wd, "SGD"), nesterov, scale});
          },
          "params"_a.none(), "learning_rate"_a = 0.1, "momentum"_a = 0.0, "dampening"_a = 0.0, "weight_decay"_a = 0.0,
          "nesterov"_a = false, "loss_scale"_a = 1.0);
  optimizer_class<nn::MomentumCell>(m, "Momentum", "v = momentum v + g; w -= learning_rate v.")
      .def(
          "__init__",
          [](Self<nn::MomentumCell> self, Py params, Py lr, double momentum, Py wd, double scale, bool nesterov) {
            construct_optimizer(self, [&] {
              construct_plain(self, to_params(params, "Momentum"), rate(lr, "Momentum"), momentum,
                              nn::MomentumOptions{decay(wd, "Momentum"), scale, nesterov});
            });
          },
          "params"_a.none(), "learning_rate"_a, "momentum"_a, "weight_decay"_a = 0.0, "loss_scale"_a = 1.0,
          "use_nesterov"_a = false);
}

void bind_adam(nb::module_& m) {
  optimizer_class<nn::AdamCell>(
      m, "Adam",
      "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m "
      "/ (sqrt(v) + eps). use_lazy and use_offload change nothing: gradients are dense, and so are updates.")
      .def(
          "__init__",
          [](Self<nn::AdamCell> self, Py params, Py lr, double beta1, double beta2, double eps, bool locking,
             bool nesterov, Py wd, double scale, bool amsgrad, const nb::kwargs& more) {
            for (auto [key, value] : more) {
              const auto name = nb::cast<std::string>(key);
              UNDERTOW_CHECK(name == "use_lazy" || name == "use_offload", KeyError, "Adam: unknown argument '{}'",
                             name);
              UNDERTOW_CHECK(!to_bool(value, "Adam", name.c_str()) || !amsgrad, ValueError,
                             "Adam: {} and use_amsgrad exclude each other", name);
            }
            make(self, "Adam", params,
                 nn::AdamOptions{rate(lr, "Adam"), beta1, beta2, eps, locking, nesterov, decay(wd, "Adam"), scale,
                                 amsgrad});
          },
          "params"_a.none(), "learning_rate"_a = 1e-3, "beta1"_a = 0.9, "beta2"_a = 0.999, "eps"_a = 1e-8,
          "use_locking"_a = false, "use_nesterov"_a = false, "weight_decay"_a = 0.0, "loss_scale"_a = 1.0,
          "use_amsgrad"_a = false, "kwargs"_a);
}

/// LazyAdam and AdamOffload: Adam for dense gradients, under the names that older programs use.
template <int N>
struct AdamNamed : nn::AdamCell {
  static constexpr const char* kNames[] = {"LazyAdam", "AdamOffload"};
  AdamNamed(const nn::Params& params, const nn::AdamOptions& o) : AdamCell(params, o, kNames[N]) {}
};

template <int N>
void bind_adam_named(nb::module_& m) {
  constexpr const char* kName = AdamNamed<N>::kNames[N];
  optimizer_class<AdamNamed<N>>(m, kName, "As Adam, which new programs should use.")
      .def(
          "__init__",
          [](Self<AdamNamed<N>> self, Py params, Py lr, double beta1, double beta2, double eps, bool locking,
             bool nesterov, Py wd, double scale) {
            make(self, kName, params,
                 nn::AdamOptions{rate(lr, kName), beta1, beta2, eps, locking, nesterov, decay(wd, kName), scale});
          },
          "params"_a.none(), "learning_rate"_a = 1e-3, "beta1"_a = 0.9, "beta2"_a = 0.999, "eps"_a = 1e-8,
          "use_locking"_a = false, "use_nesterov"_a = false, "weight_decay"_a = 0.0, "loss_scale"_a = 1.0);
}

void bind_adam_family(nb::module_& m) {
  optimizer_class<nn::AdamWeightDecayCell>(
      m, "AdamWeightDecay",
      "m and v as Adam's, without bias correction; w -= lr (m / (sqrt(v) + eps) + weight_decay w).")
      .def(
          "__init__",
          [](Self<nn::AdamWeightDecayCell> self, Py params, Py lr, double beta1, double beta2, double eps, Py wd) {
            make(self, "AdamWeightDecay", params,
                 nn::AdamWeightDecayOptions{rate(lr, "AdamWeightDecay"), beta1, beta2, eps,
                                            decay(wd, "AdamWeightDecay")});
          },
          "params"_a.none(), "learning_rate"_a = 1e-3, "beta1"_a = 0.9, "beta2"_a = 0.999, "eps"_a = 1e-6,
          "weight_decay"_a = 0.0);
  optimizer_class<nn::LambCell>(
      m, "Lamb", "r = m^ / (sqrt(v^) + eps) + weight_decay w, with m^ and v^ as Adam's; w -= lr |w| / |r| r.")
      .def(
          "__init__",
          [](Self<nn::LambCell> self, Py params, Py lr, double beta1, double beta2, double eps, Py wd) {
            make(self, "Lamb", params, nn::LambOptions{rate(lr, "Lamb"), beta1, beta2, eps, decay(wd, "Lamb")});
          },
          "params"_a.none(), "learning_rate"_a, "beta1"_a = 0.9, "beta2"_a = 0.999, "eps"_a = 1e-6,
          "weight_decay"_a = 0.0);
  optimizer_class<nn::AdaMaxCell>(m, "AdaMax",
                                  "m as Adam's; v = max(beta2 v, |g|); w -= lr / (1 - beta1^t) m / (v + eps).")
      .def(
          "__init__",
          [](Self<nn::AdaMaxCell> self, Py params, Py lr, double beta1, double beta2, double eps, Py wd, double scale) {
            make(self, "AdaMax", params,
                 nn::AdaMaxOptions{rate(lr, "AdaMax"), beta1, beta2, eps, decay(wd, "AdaMax"), scale});
          },
          "params"_a.none(), "learning_rate"_a = 1e-3, "beta1"_a = 0.9, "beta2"_a = 0.999, "eps"_a = 1e-8,
          "weight_decay"_a = 0.0, "loss_scale"_a = 1.0);
}

void bind_adaptive(nb::module_& m) {
  optimizer_class<nn::AdagradCell>(m, "Adagrad", "h += g^2; w -= lr g / sqrt(h).")
      .def(
          "__init__",
          [](Self<nn::AdagradCell> self, Py params, double accum, Py lr, bool update, double scale, Py wd) {
            make(self, "Adagrad", params,
                 nn::AdagradOptions{accum, rate(lr, "Adagrad"), update, scale, decay(wd, "Adagrad")});
          },
          "params"_a.none(), "accum"_a = 0.1, "learning_rate"_a = 1e-3, "update_slots"_a = true, "loss_scale"_a = 1.0,
          "weight_decay"_a = 0.0);
  optimizer_class<nn::AdadeltaCell>(
      m, "Adadelta",
      "a = rho a + (1 - rho) g^2; u = sqrt(b + eps) / sqrt(a + eps) g; b = rho b + (1 - rho) u^2; "
      "w -= lr u.")
      .def(
          "__init__",
          [](Self<nn::AdadeltaCell> self, Py params, Py lr, double rho, double eps, double scale, Py wd) {
            make(self, "Adadelta", params,
                 nn::AdadeltaOptions{rate(lr, "Adadelta"), rho, eps, scale, decay(wd, "Adadelta")});
          },
          "params"_a.none(), "learning_rate"_a = 1.0, "rho"_a = 0.9, "epsilon"_a = 1e-6, "loss_scale"_a = 1.0,
          "weight_decay"_a = 0.0);
  optimizer_class<nn::RMSPropCell>(m, "RMSProp",
                                   "s = decay s + (1 - decay) g^2; v = momentum v + lr g / sqrt(s + epsilon); w -= v.")
      .def(
          "__init__",
          [](Self<nn::RMSPropCell> self, Py params, Py lr, double dec, double momentum, double eps, bool locking,
             bool centered, double scale, Py wd) {
            make(self, "RMSProp", params,
                 nn::RMSPropOptions{rate(lr, "RMSProp"), dec, momentum, eps, locking, centered, scale,
                                    decay(wd, "RMSProp")});
          },
          "params"_a.none(), "learning_rate"_a = 0.1, "decay"_a = 0.9, "momentum"_a = 0.0, "epsilon"_a = 1e-10,
          "use_locking"_a = false, "centered"_a = false, "loss_scale"_a = 1.0, "weight_decay"_a = 0.0);
  optimizer_class<nn::AdaFactorCell>(
      m, "AdaFactor", "The second moment of a matrix as the product of the means of its rows and columns.")
      .def(
          "__init__",
          [](Self<nn::AdaFactorCell> self, Py params, Py lr, std::pair<double, double> eps, double clip, double dec,
             Py beta1, double wd, bool scale_parameter, bool relative, bool warmup, bool compression, double scale) {
            UNDERTOW_CHECK(!compression, ValueError, "AdaFactor: compression=True is not supported");
            nn::AdaFactorOptions o;
            if (!lr.is_none()) o.learning_rate = rate(lr, "AdaFactor");
            o.eps1 = eps.first, o.eps2 = eps.second, o.clip_threshold = clip, o.decay_rate = dec;
            o.beta1 = beta1.is_none() ? 0 : to_number(beta1, "AdaFactor", "beta1");
            o.weight_decay = wd, o.scale_parameter = scale_parameter, o.relative_step = relative;
            o.warmup_init = warmup, o.loss_scale = scale;
            make(self, "AdaFactor", params, o);
          },
          "params"_a.none(), "learning_rate"_a.none() = nb::none(), "eps"_a = std::pair(1e-30, 1e-3),
          "clip_threshold"_a = 1.0, "decay_rate"_a = 0.8, "beta1"_a.none() = 0.9, "weight_decay"_a = 0.0,
          "scale_parameter"_a = true, "relative_step"_a = true, "warmup_init"_a = false, "compression"_a = false,
          "loss_scale"_a = 1.0);
}

void bind_more(nb::module_& m) {
  optimizer_class<nn::ASGDCell>(m, "ASGD", "Averaged SGD: w = (1 - lambd eta) w - eta g, and ax, the average of w.")
      .def(
          "__init__",
          [](Self<nn::ASGDCell> self, Py params, Py lr, double lambd, double alpha, double t0, Py wd) {
            make(self, "ASGD", params, nn::ASGDOptions{rate(lr, "ASGD"), lambd, alpha, t0, decay(wd, "ASGD")});
          },
          "params"_a.none(), "learning_rate"_a = 0.1, "lambd"_a = 1e-4, "alpha"_a = 0.75, "t0"_a = 1e6,
          "weight_decay"_a = 0.0);
  const auto pair_of = [](Py o, const char* what) {
    UNDERTOW_CHECK(PyTuple_Check(o.ptr()), TypeError, "Rprop: '{}' must be a tuple, got {}", what, type_name_of(o));
    UNDERTOW_CHECK(nb::len(o) == 2, ValueError, "Rprop: '{}' must have two items, got {}", what, nb::len(o));
    return std::pair(to_float(o[0], "Rprop", what), to_float(o[1], "Rprop", what));
  };
  optimizer_class<nn::RpropCell>(m, "Rprop",
                                 "A step size per element, which follows the signs of the last two gradients.")
      .def(
          "__init__",
          [pair_of](Self<nn::RpropCell> self, Py params, Py lr, Py etas, Py sizes, Py wd) {
            make(self, "Rprop", params,
                 nn::RpropOptions{rate(lr, "Rprop"), pair_of(etas, "etas"), pair_of(sizes, "step_sizes"),
                                  decay(wd, "Rprop")});
          },
          "params"_a.none(), "learning_rate"_a = 0.1, "etas"_a = nb::make_tuple(0.5, 1.2),
          "step_sizes"_a = nb::make_tuple(1e-6, 50.0), "weight_decay"_a = 0.0);
  optimizer_class<nn::FTRLCell>(m, "FTRL", "Follow the regularized leader, per coordinate.")
      .def(
          "__init__",
          [](Self<nn::FTRLCell> self, Py params, double accum, Py lr, double power, double l1, double l2, bool locking,
             double scale, Py wd) {
            const nn::Rate fixed = rate(lr, "FTRL");
            UNDERTOW_CHECK(fixed.is_number(), ValueError, "FTRL: the learning rate must be one number, got {}",
                           type_name_of(lr));
            make(self, "FTRL", params,
                 nn::FTRLOptions{accum, fixed.value(), power, l1, l2, locking, scale, decay(wd, "FTRL")});
          },
          "params"_a.none(), "initial_accum"_a = 0.1, "learning_rate"_a = 1e-3, "lr_power"_a = -0.5, "l1"_a = 0.0,
          "l2"_a = 0.0, "use_locking"_a = false, "loss_scale"_a = 1.0, "weight_decay"_a = 0.0);
  optimizer_class<nn::ProximalAdagradCell>(m, "ProximalAdagrad", "Adagrad, then the proximal step for l1 and l2.")
      .def(
          "__init__",
          [](Self<nn::ProximalAdagradCell> self, Py params, double accum, Py lr, double l1, double l2, bool locking,
             double scale, Py wd) {
            make(self, "ProximalAdagrad", params,
                 nn::ProximalAdagradOptions{accum, rate(lr, "ProximalAdagrad"), l1, l2, locking, scale,
                                            decay(wd, "ProximalAdagrad")});
          },
          "params"_a.none(), "accum"_a = 0.1, "learning_rate"_a = 1e-3, "l1"_a = 0.0, "l2"_a = 0.0,
          "use_locking"_a = false, "loss_scale"_a = 1.0, "weight_decay"_a = 0.0);
  optimizer_class<nn::LARSCell>(
      m, "LARS",
      "In front of another optimizer: g' = ratio (g + weight_decay w), ratio = coefficient |w| / (|g| + "
      "weight_decay |w| + epsilon).")
      .def(
          "__init__",
          [](Self<nn::LARSCell> self, const Ref<nn::OptimizerCell>& optimizer, double eps, double coefficient,
             bool clip, Py filter) {
            nn::LARSOptions o{eps, coefficient, clip, {}};
            if (!filter.is_none())
              o.lars_filter = [filter](const Parameter& p) { return nb::cast<bool>(filter(wrap(p))); };
            UNDERTOW_CHECK(optimizer, TypeError, "LARS: 'optimizer' must be an Optimizer, got None");
            construct_optimizer(self, [&] { construct_plain(self, optimizer, o); });
            describe_optimizer(nb::cast(optimizer));  // LARS has taken its weight decay over
          },
          "optimizer"_a, "epsilon"_a = 1e-5, "coefficient"_a = 1e-3, "use_clip"_a = false,
          "lars_filter"_a.none() = nb::none());
}

}  // namespace

void bind_optimizer_classes(nb::module_& m) {
  bind_sgd(m);
  bind_adam(m);
  bind_adam_named<0>(m);
  bind_adam_named<1>(m);
  bind_adam_family(m);
  bind_adaptive(m);
  bind_more(m);
}

}  // namespace undertow::python
