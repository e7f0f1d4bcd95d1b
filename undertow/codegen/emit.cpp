// SPDX-License-Identifier: Apache-2.0
#include "undertow/codegen/emit.h"

#include <llvm/IR/Module.h>

#include "undertow/base/check.h"
#include "undertow/codegen/emit_stage.h"

namespace undertow::codegen {
namespace {

using llvm::Value;
using std::int64_t;

class NestEmitter {
 public:
  NestEmitter(Builder& b, const Isa& isa, const ir::LoopNest& nest, const Schedule& schedule)
      : b_(b), s_(schedule), state_{b, isa, nest, schedule, {}, {}} {
    state_.locals.resize(static_cast<std::size_t>(nest.num_locals));
  }

  void run(llvm::Function* fn) {
    auto* args = fn->getArg(0);
    for (int i = 0; i < state_.nest.num_inputs + state_.nest.num_outputs; ++i)
      state_.args.push_back(
          b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_32(b_.getPtrTy(), args, static_cast<unsigned>(i))));
    for (std::size_t i = 0; i < state_.nest.stages.size(); ++i) stages_.emplace_back(state_, i);
    enter(0, {});
    emit_loop(b_, fn->getArg(1), fn->getArg(2), 1, [&](Value* unit) { emit_unit(unit); });
  }

 private:
  Value* i64(int64_t v) { return b_.getInt64(static_cast<std::uint64_t>(v)); }

  void enter(int depth, const std::vector<StageEmitter::Index>& dims) {
    for (auto& stage : stages_) stage.enter(depth, dims);
  }

  /// body() with the stages' addresses put back afterwards.
  template <typename F>
  void scoped(F&& body) {
    std::vector<StageEmitter::State> states;
    for (const auto& stage : stages_) states.push_back(stage.save());
    body();
    for (std::size_t i = 0; i < stages_.size(); ++i) stages_[i].restore(std::move(states[i]));
  }

  void emit_unit(Value* unit) {
    std::vector<StageEmitter::Index> indices;
    Value *lo = i64(0), *rest = unit;
    const auto digit = [&](int64_t count, bool last) {
      Value* d = last ? rest : b_.CreateURem(rest, i64(count));
      if (!last) rest = b_.CreateUDiv(rest, i64(count));
      return d;
    };
    if (s_.split_dim >= 0) {
      const int64_t blocks = (s_.extent(s_.split_dim) + s_.split_block - 1) / s_.split_block;
      lo = b_.CreateMul(digit(blocks, s_.unit_dims.empty()), i64(s_.split_block));
    }
    for (std::size_t i = s_.unit_dims.size(); i-- > 0;)
      indices.push_back({s_.unit_dims[i], digit(s_.extent(s_.unit_dims[i]), i == 0)});
    scoped([&] {
      enter(1, indices);
      emit_unit_loops(0, lo);
    });
  }

  void emit_unit_loops(std::size_t loop, Value* split_lo) {
    if (loop == s_.unit_loops.size()) return emit_point();
    const int dim = s_.unit_loops[loop];
    const int64_t extent = s_.extent(dim), step = s_.step_of(dim), main = extent / step * step;
    const bool split = dim == s_.split_dim;
    Value *lo = split ? split_lo : i64(0), *block_end = split ? b_.CreateAdd(lo, i64(s_.split_block)) : nullptr;
    Value* hi = split ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, block_end, i64(main)) : i64(main);
    // `count` iterations of this dim from i on.
    const auto body = [&](Value* i, int64_t count) {
      scoped([&] {
        if (s_.vec_outer && dim == s_.vec_dim) {
          state_.vectors = static_cast<int>((count + s_.lanes - 1) / s_.lanes);
          state_.valid = static_cast<int>((count - 1) % s_.lanes + 1);
        } else if (dim == s_.row_dim) {
          state_.rows = static_cast<int>(count);
        }
        enter(2 + static_cast<int>(loop), {{dim, i}});
        emit_unit_loops(loop + 1, split_lo);
      });
    };
    emit_loop(b_, lo, hi, step, [&](Value* i) { body(i, step); });
    if (main == extent) return;
    // What is left of the extent, in the unit that has its end.
    if (!split) return body(i64(main), extent - main);
    auto* fn = b_.GetInsertBlock()->getParent();
    auto* last = llvm::BasicBlock::Create(b_.getContext(), "last", fn);
    auto* done = llvm::BasicBlock::Create(b_.getContext(), "done", fn);
    b_.CreateCondBr(b_.CreateICmpSGE(block_end, i64(extent)), last, done);
    b_.SetInsertPoint(last);
    body(i64(main), extent - main);
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
  }

  void emit_point() {
    for (int row = 0; row < state_.rows; ++row)
      for (auto& stage : stages_) stage.run(row);
  }

  Builder& b_;
  const Schedule& s_;
  NestState state_;
  std::vector<StageEmitter> stages_;
};

}  // namespace

void emit_nest(llvm::Module& module, const ir::LoopNest& nest, const Schedule& schedule, const Isa& isa,
               const std::string& name) {
  auto& c = module.getContext();
  auto* i64 = llvm::Type::getInt64Ty(c);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(c), {llvm::PointerType::getUnqual(c), i64, i64}, false);
  auto* fn = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  fn->addFnAttr(llvm::Attribute::NoUnwind);
  fn->addFnAttr("target-cpu", isa.cpu);
  fn->addFnAttr("tune-cpu", isa.tune);
  if (isa.avx512) {
    fn->addFnAttr("prefer-vector-width", "512");
    fn->addFnAttr("min-legal-vector-width", "512");
  }
  Builder b(llvm::BasicBlock::Create(c, "entry", fn));
  NestEmitter(b, isa, nest, schedule).run(fn);
  b.CreateRetVoid();
}

}  // namespace undertow::codegen
