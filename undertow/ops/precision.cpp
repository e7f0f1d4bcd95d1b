// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/precision.h"

#include "undertow/ops/apply_precision.h"

namespace undertow::ops {
namespace {

const Precision kNone;
thread_local const Precision* here = &kNone;

/// Casts the inputs of the types that `from` picks.
template <typename Pick>
bool cast_inputs(std::vector<Tensor>& inputs, DType to, Pick from) {
  bool any = false;
  for (Tensor& t : inputs)
    if (from(t.dtype()) && t.dtype() != to) t = cast(t, to), any = true;
  return any;
}
bool is_float32(DType t) { return t == DType::kFloat32; }

}  // namespace

const Precision& precision() { return *here; }

PrecisionScope::PrecisionScope() : PrecisionScope(kNone) {}
PrecisionScope::PrecisionScope(const Precision& p) : before_(here) { here = &p; }
PrecisionScope::~PrecisionScope() { here = before_; }

DType read_type(const Tensor& t) {
  const bool region = here->mode == Precision::kRegion && t.is_parameter() && is_amp_type(t.dtype());
  return region ? here->dtype : t.dtype();
}

DType promote(const Tensor& a, const Tensor& b) {
  if (a.is_parameter() && b.is_parameter()) return undertow::promote(a.dtype(), b.dtype());
  return undertow::promote(read_type(a), read_type(b));
}

Tensor high(const Tensor& t) {
  return here->mode == Precision::kAuto && is_half(t.dtype()) ? cast(t, DType::kFloat32) : t;
}

namespace detail {

bool adapt_inputs(const ir::OpDef& op, std::vector<Tensor>& inputs) {
  const Precision& p = *here;
  switch (p.mode) {
    case Precision::kOff: break;
    case Precision::kRegion:
      if ((op.view || op.access) && !inputs.empty()) inputs[0] = cast(inputs[0], read_type(inputs[0]));
      break;
    case Precision::kAllow:
      return (p.low ? p.low->contains(op.name) : op.amp == ir::AmpClass::kLow) &&
             cast_inputs(inputs, p.dtype, is_float32);
    case Precision::kAuto:
      if (op.amp == ir::AmpClass::kLow) cast_inputs(inputs, p.dtype, is_float32);
      if (op.amp == ir::AmpClass::kHigh) cast_inputs(inputs, DType::kFloat32, is_half);
      break;
  }
  return false;
}

}  // namespace detail

}  // namespace undertow::ops
