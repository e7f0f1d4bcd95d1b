// SPDX-License-Identifier: Apache-2.0
// ops/control_record.h: control flow as nodes with regions (internal to control.cpp and control_grad.cpp). `key` is
// Dispatcher::control_key's, or 0 where no function draws.
#pragma once

#include "undertow/ops/control.h"
#include "undertow/ops/dispatch.h"

namespace undertow::ops::detail {

Tensors record_cond(std::uint64_t key, const Tensor& pred, const Branch& then_fn, const Branch& else_fn,
                    const Tensors& operands);
Tensors record_while(std::uint64_t key, const std::function<Tensor(const Tensors&)>& cond_fn, const Branch& body_fn,
                     Tensors init, const LoopOptions& options = {});

/// The xs of a scan: their types, and each one where the body uses it.
struct ScanInputs {
  std::vector<ir::TensorType> types;  // with the first extent
  std::function<Tensor(std::size_t)> get;
};
ScanResult record_scan(std::uint64_t key, const ScanBody& body, Tensors init, const ScanInputs& xs,
                       const ScanOptions& options);

// ---- checks

/// "Float32(2,), Int64()"
std::string text(const std::vector<ir::TensorType>& types);
/// "\ncell net, at train.py:3", for the end of a message.
std::string place();
/// As a bool scalar. Throws unless it has one element.
Tensor predicate(const Tensor& p, const char* what);
void check_defined(const Tensors& tensors, const char* what);
/// The next carry against the one before. Weak entries of `carry` take the new dtype, and true is returned: the
/// function is to be looked at again, a few times at most.
bool check_carry(const char* op, Tensors& carry, const std::vector<ir::TensorType>& next, const LoopOptions& options,
                 int attempt = 0);

std::vector<ir::TensorType> types_of(const Tensors& tensors);
/// Type of a row, and of `length` rows.
ir::TensorType row_of(const ir::TensorType& type);
ir::TensorType rows_of(const ir::TensorType& row, std::int64_t length);

std::vector<Tensor> cond_grad(const ir::GradContext& c);
std::vector<Tensor> while_grad(const ir::GradContext& c);
std::vector<Tensor> scan_grad(const ir::GradContext& c);

}  // namespace undertow::ops::detail
