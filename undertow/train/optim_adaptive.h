// SPDX-License-Identifier: Apache-2.0
// train/optim_adaptive.h: optimizers that scale each element's step: AdamWeightDecay, AdaMax, Adagrad, Adadelta,
// RMSProp, Lamb, AdaFactor. Formulas, defaults and names of states are MindSpore's.
#pragma once

#include <string>
#include <vector>

#include "undertow/train/optimizer.h"

namespace undertow::nn {

// ---- AdamWeightDecay: Adam without bias correction, with decay beside the gradient (Loshchilov, Hutter, 2019):
//      w -= lr (m / (sqrt(v) + eps) + weight_decay w).
struct AdamWeightDecayOptions {
  Rate learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6;
  Rate weight_decay = 0.0;
};
/// State: adam_m.<p>, adam_v.<p>.
class AdamWeightDecayCell : public OptimizerCell {
 public:
  explicit AdamWeightDecayCell(const Params& params, const AdamWeightDecayOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 protected:
  std::vector<Tensor> prepare(std::vector<Tensor> grads) override { return grads; }

 private:
  AdamWeightDecayOptions options_;
  std::vector<Parameter> m_, v_;
};
using AdamWeightDecay = OptimizerOf<AdamWeightDecayCell, AdamWeightDecayOptions>;

// ---- Lamb (You et al., 2020): r = m^ / (sqrt(v^) + eps) + weight_decay w; w -= lr |w| / |r| r. The ratio is 1 where a
//      norm is 0.
struct LambOptions {
  Rate learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6;
  Rate weight_decay = 0.0;
};
/// State: lamb_m.<p>, lamb_v.<p>.
class LambCell : public OptimizerCell {
 public:
  LambCell(const Params& params, const LambOptions& options);
  void construct_update(const std::vector<Tensor>& grads) override;

 protected:
  std::vector<Tensor> prepare(std::vector<Tensor> grads) override { return centralize(std::move(grads)); }

 private:
  LambOptions options_;
  std::vector<Parameter> m_, v_;
};
using Lamb = OptimizerOf<LambCell, LambOptions>;

// ---- AdaMax (Kingma, Ba, 2015): m as Adam's; v = max(b2 v, |g|); w -= lr / (1 - b1^t) m / (v + eps).
struct AdaMaxOptions {
  Rate learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  Rate weight_decay = 0.0;
  double loss_scale = 1;
};
/// State: beta1_power [1], moment1.<p>, moment2.<p>.
class AdaMaxCell : public OptimizerCell {
 public:
  explicit AdaMaxCell(const Params& params, const AdaMaxOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  AdaMaxOptions options_;
  Parameter beta1_power_;
  std::vector<Parameter> moment1_, moment2_;
};
using AdaMax = OptimizerOf<AdaMaxCell, AdaMaxOptions>;

// ---- Adagrad (Duchi et al., 2011): h += g^2 (unless update_slots is off); w -= lr g / sqrt(h).
struct AdagradOptions {
  double accum = 0.1;
  Rate learning_rate = 1e-3;
  bool update_slots = true;
  double loss_scale = 1;
  Rate weight_decay = 0.0;
};
/// State: accum.<p>.
class AdagradCell : public OptimizerCell {
 public:
  explicit AdagradCell(const Params& params, const AdagradOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  bool update_slots_;
  std::vector<Parameter> accum_;
};
using Adagrad = OptimizerOf<AdagradCell, AdagradOptions>;

// ---- Adadelta (Zeiler, 2012): a = rho a + (1 - rho) g^2; u = sqrt(b + eps) / sqrt(a + eps) g;
//      b = rho b + (1 - rho) u^2; w -= lr u.
struct AdadeltaOptions {
  Rate learning_rate = 1.0;
  double rho = 0.9, epsilon = 1e-6, loss_scale = 1;
  Rate weight_decay = 0.0;
};
/// State: accum.<p>, accum_update.<p>.
class AdadeltaCell : public OptimizerCell {
 public:
  explicit AdadeltaCell(const Params& params, const AdadeltaOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  AdadeltaOptions options_;
  std::vector<Parameter> accum_, accum_update_;
};
using Adadelta = OptimizerOf<AdadeltaCell, AdadeltaOptions>;

// ---- RMSProp (Hinton, 2012): s = decay s + (1 - decay) g^2; v = momentum v + lr g / sqrt(s + eps); w -= v. With
//      `centered`, a = decay a + (1 - decay) g and s - a^2 stands for s in the root.
struct RMSPropOptions {
  Rate learning_rate = 0.1;
  double decay = 0.9, momentum = 0, epsilon = 1e-10;
  bool use_locking = false;  ///< accepted, of no effect
  bool centered = false;
  double loss_scale = 1;
  Rate weight_decay = 0.0;
};
/// State: mean_square.<p> (from 1), moment.<p>, and mean_grad.<p> with `centered`.
class RMSPropCell : public OptimizerCell {
 public:
  explicit RMSPropCell(const Params& params, const RMSPropOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  RMSPropOptions options_;
  std::vector<Parameter> mean_grad_, mean_square_, moment_;
};
using RMSProp = OptimizerOf<RMSPropCell, RMSPropOptions>;

// ---- AdaFactor (Shazeer, Stern, 2018): the second moment of a matrix as the product of its row and column means.
struct AdaFactorOptions {
  std::optional<Rate> learning_rate;  ///< none: min(1e-2 or 1e-6 t, 1 / sqrt(t)), which needs relative_step
  double eps1 = 1e-30, eps2 = 1e-3;   ///< added to g^2; smallest root mean square of a parameter
  double clip_threshold = 1, decay_rate = 0.8, beta1 = 0.9;
  double weight_decay = 0;
  bool scale_parameter = true, relative_step = true, warmup_init = false;
  double loss_scale = 1;
};
/// State: exp_avg.<p> (with beta1 > 0), exp_avg_sq_row_<p>, exp_avg_sq_col_<p>, exp_avg_sq_<p>, afactor_step.
class AdaFactorCell : public OptimizerCell {
 public:
  explicit AdaFactorCell(const Params& params, const AdaFactorOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 protected:
  std::vector<Tensor> prepare(std::vector<Tensor> grads) override { return grads; }

 private:
  AdaFactorOptions options_;
  Parameter step_;
  std::vector<Parameter> exp_avg_, row_, col_, square_;
};
using AdaFactor = OptimizerOf<AdaFactorCell, AdaFactorOptions>;

}  // namespace undertow::nn
