// SPDX-License-Identifier: Apache-2.0
// backend/cpu/kernel_list.h: which kernels each op may use, from the most special to the most general.
//
// The first candidate that accepts a node runs it; which one that is depends on shapes, dtypes, instruction set and
// thread count only. `UNDERTOW_VERBOSE=dispatch` prints each choice and why the candidates before it declined.
#pragma once

#include "undertow/backend/cpu/kernel.h"

namespace undertow::backend::cpu {

struct Candidate {
  const char* name;
  Choice (*make)(const NodeView&);
};

/// Throws DeviceError when no candidate accepts (an op without a reference function).
std::unique_ptr<Kernel> choose_kernel(const NodeView& node);

// Candidates, by file. Each says in its file what it takes.
Choice zero_fill(const NodeView&);         // generic.cpp: an empty result, or an empty sum
Choice reference_kernel(const NodeView&);  // generic.cpp: the op's own plain loops
Choice widened(const NodeView&);           // generic.cpp: half types through float32

Choice small_conv2d(const NodeView&);  // small_conv.cpp
Choice small_conv2d_grad_input(const NodeView&);
Choice small_conv2d_grad_weight(const NodeView&);
Choice dnnl_conv(const NodeView&);  // onednn_conv.cpp: 2 or 3 dimensions
Choice dnnl_conv_grad_input(const NodeView&);
Choice dnnl_conv_grad_weight(const NodeView&);

Choice small_matmul(const NodeView&);  // matmul.cpp: products where calling the library costs more than it gains
Choice dnnl_matmul(const NodeView&);   // onednn_matmul.cpp
Choice own_matmul(const NodeView&);    // matmul.cpp: any float32 product
Choice plain_matmul(const NodeView&);  // plain_matmul.cpp: float64 and integers

Choice max_pool2d(const NodeView&);  // pool.cpp
Choice max_pool2d_grad(const NodeView&);
Choice avg_pool2d(const NodeView&);
Choice avg_pool2d_grad(const NodeView&);

Choice concat(const NodeView&);  // data_movement.cpp
Choice slice_update(const NodeView&);
Choice pad(const NodeView&);
Choice slice(const NodeView&);
Choice transpose(const NodeView&);
Choice broadcast_to(const NodeView&);

Choice gather(const NodeView&);  // index.cpp
Choice scatter_add(const NodeView&);
Choice scatter(const NodeView&);
Choice argmax(const NodeView&);
Choice argmin(const NodeView&);
Choice check_index(const NodeView&);

Choice cumsum(const NodeView&);  // order.cpp
Choice cumprod(const NodeView&);
Choice cummax(const NodeView&);
Choice cummin(const NodeView&);
Choice sort(const NodeView&);

}  // namespace undertow::backend::cpu
