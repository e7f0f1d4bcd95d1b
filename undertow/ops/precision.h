// SPDX-License-Identifier: Apache-2.0
// ops/precision.h: what mixed precision makes of the op calls on this thread. Cells set it around their `construct`
// (train/cell.h); gradients, optimizers and whatever computes in its own type run without it.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "undertow/ops/ops.h"

namespace undertow::ops {

struct Precision {
  enum Mode : std::uint8_t {
    kOff,     ///< ops compute in the dtypes of their inputs
    kRegion,  ///< parameters are read as `dtype`: beside a tensor of that type, and where an op only moves them
    kAllow,   ///< some ops take their float32 inputs as `dtype`; their results come back as float32
    kAuto,    ///< ops of AmpClass::kLow take float32 inputs as `dtype`, those of kHigh half ones as float32
  };
  Mode mode = kOff;
  DType dtype = DType::kFloat32;
  /// kAllow: names of the ops; null: those of AmpClass::kLow.
  std::shared_ptr<const std::set<std::string>> low;
};

const Precision& precision();

class PrecisionScope {
 public:
  /// Without an argument: off.
  PrecisionScope();
  /// `p` must outlive the scope.
  explicit PrecisionScope(const Precision& p);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;

 private:
  const Precision* before_;
};

/// The types that mixed precision moves between: float32 and the half types.
inline bool is_amp_type(DType dtype) { return dtype == DType::kFloat32 || is_half(dtype); }

/// The type as which `t` takes part in an op: its own; a parameter's in a region is the region's.
DType read_type(const Tensor& t);
inline Tensor read(const Tensor& t) { return t.defined() ? cast(t, read_type(t)) : t; }
/// Of two tensors. Parameters among themselves keep their types: what is kept in float32 is not rounded on its way.
DType promote(const Tensor& a, const Tensor& b);

/// `t` for a function that is computed, and gives its result, in float32 in kAuto (sums of exponentials, norms).
Tensor high(const Tensor& t);

}  // namespace undertow::ops
