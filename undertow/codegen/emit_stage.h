// SPDX-License-Identifier: Apache-2.0
// codegen/emit_stage.h: one stage of a nest being emitted: its instructions placed at the outermost loop depth that
// they allow, its accumulators, its results.
#pragma once

#include <vector>

#include "undertow/codegen/emit_scalar.h"
#include "undertow/codegen/schedule.h"

namespace undertow::codegen {

/// What all stages of one function share.
struct NestState {
  Builder& b;
  const Isa& isa;
  const ir::LoopNest& nest;
  const Schedule& schedule;
  std::vector<llvm::Value*> args;                 // buffers: inputs, then outputs
  std::vector<std::vector<llvm::Value*>> locals;  // [local][vector of the tile]
  int vectors = 1;                                // of the tile at hand
  int valid = 1;                                  // lanes of its last vector (vec_outer)
  int rows = 1;                                   // points of row_dim at hand
};

/// for (i = lo; i < hi; i += step) body(i). A loop that is known to run once or never is not emitted.
template <typename F>
void emit_loop(Builder& b, llvm::Value* lo, llvm::Value* hi, std::int64_t step, F&& body) {
  auto* clo = llvm::dyn_cast<llvm::ConstantInt>(lo);
  auto* chi = llvm::dyn_cast<llvm::ConstantInt>(hi);
  if (clo && chi) {
    if (clo->getSExtValue() >= chi->getSExtValue()) return;
    if (clo->getSExtValue() + step >= chi->getSExtValue()) return body(lo);
  }
  auto* fn = b.GetInsertBlock()->getParent();
  auto* before = b.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(b.getContext(), "loop", fn);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "after", fn);
  if (clo && chi) b.CreateBr(loop);
  else b.CreateCondBr(b.CreateICmpSLT(lo, hi), loop, after);
  b.SetInsertPoint(loop);
  auto* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(lo, before);
  body(static_cast<llvm::Value*>(i));
  llvm::Value* next = b.CreateNSWAdd(i, b.getInt64(static_cast<std::uint64_t>(step)));
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, hi), loop, after);
  b.SetInsertPoint(after);
}

class StageEmitter {
 public:
  StageEmitter(NestState& nest, std::size_t stage);

  /// Loop depth `depth` was entered: `dims` have these indices from here on. Adds them to the addresses and emits the
  /// instructions that need no deeper loop.
  struct Index {
    int dim;
    llvm::Value* value;
  };
  void enter(int depth, const std::vector<Index>& dims);

  /// At an outer point: everything that the stage does there, for one of the rows at hand; row 0 comes first.
  void run(int row);

  /// Values and addresses of loops since left are dropped by restoring what `save` returned.
  struct State {
    std::vector<llvm::Value*> load_at, store_at;
    llvm::Value* index_at = nullptr;
  };
  State save() const { return state_; }
  void restore(State s) { state_ = std::move(s); }

 private:
  struct Reduction {
    std::size_t result;
    ir::ReduceOp op;
    int local;
    DType dtype;                                   // accumulated in
    std::vector<std::vector<llvm::Value*>> slots;  // [vector][copy]
    std::vector<llvm::Value*> outer_slots;         // [vector], float64, when chunked
  };

  void analyse();
  int depth_of(int dim) const;
  int depth_of(const ScheduledAccess& a) const;
  std::int64_t stride_of(const ScheduledAccess& a, int dim) const {
    return dim < 0 ? 0 : a.strides[static_cast<std::size_t>(dim)];
  }
  llvm::Value* address(const ScheduledAccess& a, llvm::Value* at, int output, std::int64_t extra);
  void add_index(const std::vector<Index>& dims);
  void emit_level(int depth, int copy, int valid);
  llvm::Value* transposed(std::size_t load, int vector, int row, int valid);
  std::int64_t distance(const ScheduledAccess& a, int vector, int copy) const;
  llvm::Value* emit_one(std::size_t inst, int vector, int copy, int valid);
  llvm::Value* operand(int id, int vector, bool splat);
  llvm::Value* splat(llvm::Value* v);
  llvm::Value* result_value(std::size_t result, int vector);
  void finish_point(int copy, int valid);
  bool already_rounded(int id, DType dtype) const;

  void emit_loops(std::size_t loop);
  void emit_innermost(llvm::Value* lo, llvm::Value* hi_main);
  void emit_leftovers();
  void reset_chunk();
  void flush_chunk();
  void begin_reductions();
  void end_reductions();
  llvm::Value* combined(const Reduction& r, int vector);

  NestState& n_;
  const ir::Stage& stage_;
  const StageSchedule& s_;
  int lanes_;                  // of varying values in this stage
  bool vec_inner_ = false;     // lanes run along the innermost loop
  std::vector<int> level_;     // of instructions: the depth at which they can be emitted
  std::vector<bool> varying_;  // over lanes; the others are scalars
  std::vector<bool> wants_splat_;
  std::vector<std::vector<llvm::Value*>> values_;  // [inst][vector]; one entry for what does not vary
  std::vector<llvm::Value*> splats_;
  std::vector<Reduction> reductions_;
  std::vector<std::vector<std::vector<llvm::Value*>>> transposed_;  // [load][vector][row]
  State state_;
};

}  // namespace undertow::codegen
