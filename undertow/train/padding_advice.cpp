// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/padding_advice.h"

#include <utility>

#include "undertow/ops/window.h"
#include "undertow/runtime/trace.h"

namespace undertow::train {
namespace {

thread_local const TracedCall* current = nullptr;

}  // namespace

TracedCall::TracedCall(const Ref<nn::Cell>& network, const std::vector<Tensor>& inputs)
    : network_(network), inputs_(inputs), before_(current) {
  current = this;
}
TracedCall::~TracedCall() { current = before_; }

std::string padding_advice() {
  const TracedCall* traced = std::exchange(current, nullptr);  // an error of the trial asks for no advice
  if (!traced) return "";
  std::string advice;
  try {
    const ops::SameIsValid trial;
    runtime::Trace trace(runtime::Trace::Mode::kCompile);
    const runtime::TraceScope scope(&trace);
    std::vector<nn::Value> inputs;
    for (const Tensor& t : traced->inputs())
      inputs.emplace_back(trace.symbolic_input("input" + std::to_string(inputs.size()), t.dtype(), t.shape()));
    traced->network()->call(inputs);
    if (trial.asked())
      advice =
          "\nwith pad_mode=\"valid\" in the convolutions before it the shapes would fit; their default, \"same\", "
          "pads the input";
  } catch (...) {  // it does not fit so either
  }
  current = traced;
  return advice;
}

}  // namespace undertow::train
