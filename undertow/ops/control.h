// SPDX-License-Identifier: Apache-2.0
// ops/control.h: control flow on values that are known only when a step runs.
//
// While a step is compiled, the functions are recorded as regions of one node (docs/decisions/0005-regions.md): they
// may use any tensor and parameter of the program around them, and write parameters. Otherwise they run at once. They
// differentiate in both modes. Random draws differ in every trip of a loop and are the same in both modes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "undertow/tensor/tensor.h"

namespace undertow::ops {

using Tensors = std::vector<Tensor>;
using Branch = std::function<Tensors(const Tensors& operands)>;

/// then_fn(operands) where `pred` (one element) is true, else else_fn(operands); only that one runs. Both must return
/// tensors of the same number, dtypes and shapes, else TypeError naming both.
/// Gradient: the chosen branch once more, with its gradient.
Tensors cond(const Tensor& pred, const Branch& then_fn, const Branch& else_fn, const Tensors& operands = {});

struct LoopOptions {
  /// Carries (by position) whose dtype the loop's function may change once: those that were plain numbers.
  std::vector<bool> weak;
};

/// carry = body_fn(carry) for as long as cond_fn(carry) (one element) is true. The carries keep their dtypes and
/// shapes, else TypeError naming both. cond_fn writes no parameter. Gradient: memory does not grow with the number of
/// trips n, for the carry of each trip is computed again from the first one: n * (n - 1) / 2 trips in all. Where the
/// number of trips is known use `scan` or `fori_loop`.
Tensors while_loop(const std::function<Tensor(const Tensors& carry)>& cond_fn, const Branch& body_fn,
                   const Tensors& init, const LoopOptions& options = {});

struct ScanResult {
  Tensors carry, ys;
};
using ScanBody = std::function<ScanResult(const Tensors& carry, const Tensors& x)>;
struct ScanOptions : LoopOptions {
  std::int64_t length = -1;  ///< trips; -1: the first extent of xs
  bool reverse = false;      ///< from the last row to the first; ys keep the rows' order
  bool unroll = false;       ///< record the trips one after the other instead of as a loop
};

/// (carry, ys[i]) = body(carry, xs[i]) for each row i; ys are stacked along a new first axis. The carries keep their
/// dtypes and shapes, else TypeError naming both; ShapeError where the xs have no or different first extents.
/// Gradient: a scan the other way. It holds the carries of all trips, and runs the body a second time.
ScanResult scan(const ScanBody& body, const Tensors& init, const Tensors& xs, const ScanOptions& options = {});

using IndexedBody = std::function<Tensors(const Tensor& index, const Tensors& carry)>;
/// carry = body(i, carry) for lower <= i < upper, i an int64 scalar. Gradient: as scan's.
Tensors fori_loop(std::int64_t lower, std::int64_t upper, const IndexedBody& body, const Tensors& init,
                  const ScanOptions& options = {});
/// With bounds known only when the step runs. Gradient: as while_loop's.
Tensors fori_loop(const Tensor& lower, const Tensor& upper, const IndexedBody& body, const Tensors& init,
                  const LoopOptions& options = {});

}  // namespace undertow::ops
