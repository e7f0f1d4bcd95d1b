// SPDX-License-Identifier: Apache-2.0
// codegen/schedule.h: how a loop nest is run: which dimension becomes the lanes of vectors, what one parallel unit is,
// how reductions are chunked. Fixed rules from the nest and the lane count alone, so that results never depend on the
// machine's load, on the thread count or on timing.
//
//   for u in [begin, end)                 depth 1: the unit; fixes the indices of unit_dims and the block of split_dim
//     for each of unit_loops              depth 2 ..: outer dims inside a unit; vec_dim last when it is an outer dim
//       stage 0                           at depth D = 1 + unit_loops.size(): one outer point, or `tile` vectors of
//       them
//         for each of stage.loops         depth D+1 ..: inner dims, innermost last
//       stage 1 ...
#pragma once

#include <cstdint>
#include <vector>

#include "undertow/ir/loop_nest.h"

namespace undertow::codegen {

/// ir::Access over the schedule's dims (size-1 dims dropped, dims that allow it merged).
struct ScheduledAccess {
  int buffer = 0;
  DType dtype = DType::kFloat32;
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
};

struct StageSchedule {
  std::vector<ScheduledAccess> loads;
  std::vector<ScheduledAccess> stores;  // one per expression result; unused for results that are not stores
  ScheduledAccess index;                // kIndex as an address: row-major strides over the original extents
  std::vector<int> loops;               // inner dims, innermost last; empty in outer stages
  int unroll = 1;                       // copies of the innermost loop's body, each with accumulators of its own
  /// Sums and products of floats over many points: partial results of at most `chunk_block` iterations of loop
  /// `chunk_loop` are added to an outer accumulator in float64. -1: one level is enough.
  int chunk_loop = -1;
  std::int64_t chunk_block = 0;
};

struct Schedule {
  std::vector<std::int64_t> extents;
  int num_outer = 0;
  int vec_dim = -1;        // -1: every dim has extent 1
  bool vec_outer = false;  // whether vec_dim is an outer dim: then locals are vectors
  int lanes = 1;           // of vec_dim; 1 without one
  int tile = 1;            // vectors of vec_dim at an outer point, when vec_outer
  /// Elementwise nests: `rows` points of row_dim are done together, so that loads whose elements are neighbours along
  /// row_dim and not along vec_dim are read as vectors and transposed in registers. -1: none.
  int row_dim = -1;
  int rows = 1;

  std::vector<int> unit_dims;
  int split_dim = -1;  // the outer dim cut in blocks of split_block, whose number is the unit's last digit; or -1
  std::int64_t split_block = 0;
  std::vector<int> unit_loops;
  std::int64_t units = 1;

  std::vector<StageSchedule> stages;
  double cost = 0;           // ns on one core for all units, roughly
  bool in_place_ok = false;  // see CompiledNest

  int outer_depth() const { return 1 + static_cast<int>(unit_loops.size()); }
  /// Iterations of an outer dim that its loop inside a unit does at once.
  std::int64_t step_of(int dim) const {
    return vec_outer && dim == vec_dim ? std::int64_t{tile} * lanes : dim == row_dim ? rows : 1;
  }
  std::int64_t extent(int dim) const { return extents[static_cast<std::size_t>(dim)]; }
};

Schedule make_schedule(const ir::LoopNest& nest, int lanes);

/// Rough cost of an instruction in cycles a vector.
double weight_of(const ir::ExprInst& inst);

}  // namespace undertow::codegen
