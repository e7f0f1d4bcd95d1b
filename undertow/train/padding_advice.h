// SPDX-License-Identifier: Apache-2.0
// train/padding_advice.h: a layer that does not fit may do so without the padding of the convolutions before it.
#pragma once

#include <string>
#include <vector>

#include "undertow/train/cell.h"

namespace undertow::train {

/// While one exists, this thread traces `network` for inputs of these types: what padding_advice() tries out.
class TracedCall {
 public:
  TracedCall(const Ref<nn::Cell>& network, const std::vector<Tensor>& inputs);
  ~TracedCall();
  TracedCall(const TracedCall&) = delete;

  const Ref<nn::Cell>& network() const { return network_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }

 private:
  const Ref<nn::Cell>& network_;
  const std::vector<Tensor>& inputs_;
  const TracedCall* before_;
};

/// For the end of a shape error: a line that says that pad_mode="valid" would fit, where tracing the network so has
/// shown that it would; otherwise empty.
std::string padding_advice();

}  // namespace undertow::train
