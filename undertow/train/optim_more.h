// SPDX-License-Identifier: Apache-2.0
// train/optim_more.h: ASGD, Rprop, FTRL, ProximalAdagrad, and LARS around another optimizer.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "undertow/train/optimizer.h"

namespace undertow::nn {

// ---- ASGD (Polyak, Juditsky, 1992): w = (1 - lambd eta) w - eta g; ax += mu (w - ax) (ax = w while mu is 1);
//      eta = lr / (1 + lambd lr t)^alpha; mu = 1 / max(1, t - t0).
struct ASGDOptions {
  Rate learning_rate = 0.1;
  double lambd = 1e-4, alpha = 0.75, t0 = 1e6;
  Rate weight_decay = 0.0;
};
/// State: mu_<p>, eta_<p> (scalars), ax_.<p>: the average.
class ASGDCell : public OptimizerCell {
 public:
  explicit ASGDCell(const Params& params, const ASGDOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  ASGDOptions options_;
  std::vector<Parameter> mu_, eta_, ax_;
};
using ASGD = OptimizerOf<ASGDCell, ASGDOptions>;

// ---- Rprop (Riedmiller, Braun, 1993): a step size per element, which grows by etas.second while the gradient keeps
// its
//      sign and shrinks by etas.first (and skips the update) where it turns.
struct RpropOptions {
  Rate learning_rate = 0.1;  ///< the first step size
  std::pair<double, double> etas{0.5, 1.2}, step_sizes{1e-6, 50.0};
  Rate weight_decay = 0.0;
};
/// State: prev.<p>, step_size.<p>.
class RpropCell : public OptimizerCell {
 public:
  explicit RpropCell(const Params& params, const RpropOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  RpropOptions options_;
  std::vector<Parameter> prev_, step_size_;
};
using Rprop = OptimizerOf<RpropCell, RpropOptions>;

// ---- FTRL (McMahan, Streeter, 2010), with p = -lr_power: n' = n + g^2; z += g - (n'^p - n^p) / lr w;
//      w = (sign(z) l1 - z) / (n'^p / lr + 2 l2) where |z| > l1, else 0.
struct FTRLOptions {
  double initial_accum = 0.1;
  double learning_rate = 1e-3;  ///< fixed, and the same for all groups
  double lr_power = -0.5, l1 = 0, l2 = 0;
  bool use_locking = false;  ///< accepted, of no effect
  double loss_scale = 1;
  Rate weight_decay = 0.0;
};
/// State: moments.<p>, linear.<p>. Weight decay is applied to every parameter.
class FTRLCell : public OptimizerCell {
 public:
  explicit FTRLCell(const Params& params, const FTRLOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  FTRLOptions options_;
  std::vector<Parameter> moments_, linear_;
};
using FTRL = OptimizerOf<FTRLCell, FTRLOptions>;

// ---- ProximalAdagrad (Duchi, Singer, 2009): h += g^2; r = lr / sqrt(h); v = w - r g;
//      w = sign(v) max(|v| - r l1, 0) / (1 + r l2).
struct ProximalAdagradOptions {
  double accum = 0.1;
  Rate learning_rate = 1e-3;
  double l1 = 0, l2 = 0;
  bool use_locking = false;  ///< accepted, of no effect
  double loss_scale = 1;
  Rate weight_decay = 0.0;
};
/// State: accum.<p>.
class ProximalAdagradCell : public OptimizerCell {
 public:
  explicit ProximalAdagradCell(const Params& params, const ProximalAdagradOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  ProximalAdagradOptions options_;
  std::vector<Parameter> accum_;
};
using ProximalAdagrad = OptimizerOf<ProximalAdagradCell, ProximalAdagradOptions>;

// ---- LARS (You et al., 2017) in front of another optimizer, whose weight decay it takes over:
//      g' = ratio (g + weight_decay w), ratio = coefficient |w| / (|g| + weight_decay |w| + epsilon), 1 where a norm is
//      0; with use_clip, min(ratio / lr, 1).
struct LARSOptions {
  double epsilon = 1e-5, coefficient = 1e-3;
  bool use_clip = false;
  /// Which parameters it applies to; default: no "LayerNorm" and no "bias" in the name.
  std::function<bool(const Parameter&)> lars_filter;
};
/// Has no state of its own: everything is the inner optimizer's.
class LARSCell : public OptimizerCell {
 public:
  explicit LARSCell(Ref<OptimizerCell> optimizer, const LARSOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;
  const Ref<OptimizerCell>& inner() const { return inner_; }

 protected:
  std::vector<Tensor> prepare(std::vector<Tensor> grads) override { return grads; }
  bool counts_steps() const override { return false; }

 private:
  Ref<OptimizerCell> inner_;
  LARSOptions options_;
  std::vector<bool> applies_;
};
class LARS : public OptimizerHandle<LARSCell> {
 public:
  explicit LARS(const Ref<OptimizerCell>& optimizer, const LARSOptions& options = {})
      : OptimizerHandle(make_ref<LARSCell>(optimizer, options)) {}
};

}  // namespace undertow::nn
