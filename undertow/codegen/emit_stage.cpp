// SPDX-License-Identifier: Apache-2.0
#include "undertow/codegen/emit_stage.h"

#include <algorithm>

#include "undertow/base/check.h"

namespace undertow::codegen {

using ir::Opcode;
using llvm::Value;
using std::int64_t;

StageEmitter::StageEmitter(NestState& nest, std::size_t stage)
    : n_(nest), stage_(nest.nest.stages[stage]), s_(nest.schedule.stages[stage]) {
  const auto& sched = n_.schedule;
  vec_inner_ = stage_.inner && sched.vec_dim >= sched.num_outer;
  lanes_ = sched.vec_outer || vec_inner_ ? sched.lanes : 1;
  state_.load_at.resize(s_.loads.size());
  state_.store_at.resize(s_.stores.size());
  transposed_.resize(s_.loads.size());
  analyse();
  for (std::size_t r = 0; r < stage_.results.size(); ++r)
    if (const auto* reduce = std::get_if<ir::ReduceResult>(&stage_.results[r])) {
      const auto& inst = stage_.expr.insts[static_cast<std::size_t>(stage_.expr.results[r])];
      reductions_.push_back({r, reduce->op, reduce->local, compute_type(inst.dtype), {}, {}});
    }
}

int StageEmitter::depth_of(int dim) const {
  const auto& sched = n_.schedule;
  for (std::size_t l = 0; l < s_.loops.size(); ++l)
    if (s_.loops[l] == dim) return sched.outer_depth() + 1 + static_cast<int>(l);
  if (dim == sched.row_dim) return sched.outer_depth();  // rows are counted at the point itself
  for (std::size_t l = 0; l < sched.unit_loops.size(); ++l)
    if (sched.unit_loops[l] == dim) return 2 + static_cast<int>(l);
  return 1;
}

int StageEmitter::depth_of(const ScheduledAccess& a) const {
  int depth = 0;
  for (std::size_t d = 0; d < a.strides.size(); ++d)
    if (a.strides[d] != 0) depth = std::max(depth, depth_of(static_cast<int>(d)));
  return depth;
}

void StageEmitter::analyse() {
  const auto& insts = stage_.expr.insts;
  const auto& sched = n_.schedule;
  const int vec = lanes_ > 1 ? sched.vec_dim : -1;
  level_.assign(insts.size(), 0);
  varying_.assign(insts.size(), false);
  wants_splat_.assign(insts.size(), false);
  values_.assign(insts.size(), {});
  splats_.assign(insts.size(), nullptr);
  for (std::size_t i = 0; i < insts.size(); ++i) {
    const auto& inst = insts[i];
    if (inst.op == Opcode::kInput) {
      const auto in = static_cast<std::size_t>(inst.imm);
      if (in < s_.loads.size()) {
        level_[i] = depth_of(s_.loads[in]);
        varying_[i] = stride_of(s_.loads[in], vec) != 0;
      } else {
        level_[i] = sched.outer_depth();
        varying_[i] = sched.vec_outer;
      }
    } else if (inst.op == Opcode::kIndex) {
      level_[i] = depth_of(s_.index);
      varying_[i] = stride_of(s_.index, vec) != 0;
    }
    for (const int o : {inst.a, inst.b, inst.c}) {
      if (o < 0) continue;
      const auto k = static_cast<std::size_t>(o);
      level_[i] = std::max(level_[i], level_[k]);
      if (varying_[k]) varying_[i] = true;
    }
    if (varying_[i])
      for (const int o : {inst.a, inst.b, inst.c})
        if (o >= 0) wants_splat_[static_cast<std::size_t>(o)] = true;
  }
  if (lanes_ > 1)
    for (const int r : stage_.expr.results) wants_splat_[static_cast<std::size_t>(r)] = true;
}

Value* StageEmitter::splat(Value* v) {
  if (lanes_ == 1 || v->getType()->isVectorTy()) return v;
  return n_.b.CreateVectorSplat(static_cast<unsigned>(lanes_), v);
}

Value* StageEmitter::operand(int id, int vector, bool vectors) {
  const auto i = static_cast<std::size_t>(id);
  if (!varying_[i]) return vectors ? splats_[i] : values_[i][0];
  return values_[i][static_cast<std::size_t>(vector)];
}

Value* StageEmitter::address(const ScheduledAccess& a, Value* at, int first, int64_t extra) {
  auto& b = n_.b;
  llvm::Type* element = memory_type(b.getContext(), a.dtype);
  Value* p = n_.args[static_cast<std::size_t>(first + a.buffer)];
  if (at) p = b.CreateGEP(element, p, at);
  const int64_t constant = a.offset + extra;
  return constant ? b.CreateGEP(element, p, b.getInt64(static_cast<std::uint64_t>(constant))) : p;
}

void StageEmitter::add_index(const std::vector<Index>& dims) {
  auto& b = n_.b;
  const auto add = [&](const ScheduledAccess& a, Value*& at) {
    for (const auto& [dim, value] : dims) {
      const int64_t stride = stride_of(a, dim);
      const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
      if (stride == 0 || (constant && constant->isZero())) continue;
      Value* term = stride == 1 ? value : b.CreateMul(value, b.getInt64(static_cast<std::uint64_t>(stride)));
      at = at ? b.CreateAdd(at, term) : term;
    }
  };
  for (std::size_t i = 0; i < s_.loads.size(); ++i) add(s_.loads[i], state_.load_at[i]);
  for (std::size_t i = 0; i < s_.stores.size(); ++i)
    if (std::holds_alternative<ir::StoreResult>(stage_.results[i])) add(s_.stores[i], state_.store_at[i]);
  add(s_.index, state_.index_at);
}

void StageEmitter::enter(int depth, const std::vector<Index>& dims) {
  add_index(dims);
  // At the outer point itself stages take turns: they may need each other's results.
  if (depth < n_.schedule.outer_depth()) emit_level(depth, 0, lanes_);
}

/// How far a vector of the tile and a copy of the innermost body, or a row, are from the indices of the loops.
int64_t StageEmitter::distance(const ScheduledAccess& a, int vector, int copy) const {
  const auto& sched = n_.schedule;
  int64_t elements = 0;
  if (sched.vec_outer) elements += stride_of(a, sched.vec_dim) * vector * lanes_;
  if (!s_.loops.empty()) elements += stride_of(a, s_.loops.back()) * copy * (vec_inner_ ? lanes_ : 1);
  else if (sched.row_dim >= 0) elements += stride_of(a, sched.row_dim) * copy;
  return elements;
}

/// A load that runs along row_dim, or null: vectors along row_dim, one per lane, transposed when row 0 asks.
Value* StageEmitter::transposed(std::size_t load, int vector, int row, int valid) {
  const auto& sched = n_.schedule;
  const auto& a = s_.loads[load];
  if (sched.row_dim < 0 || n_.rows != lanes_ || stride_of(a, sched.row_dim) != 1) return nullptr;
  if (std::abs(stride_of(a, sched.vec_dim)) < 2) return nullptr;
  auto& vectors = transposed_[load];
  vectors.resize(std::max(vectors.size(), static_cast<std::size_t>(vector + 1)));
  auto& rows = vectors[static_cast<std::size_t>(vector)];
  if (row == 0) {
    rows.clear();
    for (int lane = 0; lane < lanes_; ++lane) {
      const int64_t at = distance(a, vector, 0) + lane * stride_of(a, sched.vec_dim);
      rows.push_back(lane < valid
                         ? emit_load(n_.b, n_.isa, address(a, state_.load_at[load], 0, at), a.dtype, 1, lanes_, lanes_)
                         : llvm::Constant::getNullValue(register_type(n_.b.getContext(), a.dtype, lanes_)));
    }
    rows = emit_transpose(n_.b, std::move(rows));
  }
  return rows[static_cast<std::size_t>(row)];
}

Value* StageEmitter::emit_one(std::size_t i, int vector, int copy, int valid) {
  auto& b = n_.b;
  const auto& inst = stage_.expr.insts[i];
  const auto& sched = n_.schedule;
  const bool varies = varying_[i];
  switch (inst.op) {
    case Opcode::kConst: return emit_constant(b.getContext(), inst);
    case Opcode::kInput: {
      const auto in = static_cast<std::size_t>(inst.imm);
      if (in >= s_.loads.size())
        return n_
            .locals[static_cast<std::size_t>(stage_.locals[in - s_.loads.size()])][static_cast<std::size_t>(vector)];
      if (varies)
        if (Value* v = transposed(in, vector, copy, valid)) return v;
      const auto& a = s_.loads[in];
      return emit_load(b, n_.isa, address(a, state_.load_at[in], 0, distance(a, vector, copy)), a.dtype,
                       stride_of(a, sched.vec_dim), varies ? lanes_ : 1, valid);
    }
    case Opcode::kIndex: {
      const int64_t constant = distance(s_.index, vector, copy);
      Value* at = b.getInt64(static_cast<std::uint64_t>(constant));
      if (state_.index_at) at = b.CreateAdd(state_.index_at, at);
      if (!varies) return at;
      std::vector<llvm::Constant*> lanes;
      for (int l = 0; l < lanes_; ++l)
        lanes.push_back(b.getInt64(static_cast<std::uint64_t>(l * stride_of(s_.index, sched.vec_dim))));
      return b.CreateAdd(splat(at), llvm::ConstantVector::get(lanes));
    }
    default: break;
  }
  const auto get = [&](int id) { return id < 0 ? nullptr : operand(id, vector, varies); };
  const DType from = inst.a < 0 ? inst.dtype : stage_.expr.insts[static_cast<std::size_t>(inst.a)].dtype;
  return emit_inst(b, inst, from, get(inst.a), get(inst.b), get(inst.c));
}

void StageEmitter::emit_level(int depth, int copy, int valid) {
  const auto lanes_valid = [&](int v) {
    if (vec_inner_) return valid;
    return n_.schedule.vec_outer && v + 1 == n_.vectors ? n_.valid : lanes_;
  };
  const std::size_t count = level_.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (level_[i] != depth || varying_[i]) continue;
    values_[i] = {emit_one(i, 0, copy, valid)};
    splats_[i] = wants_splat_[i] ? splat(values_[i][0]) : values_[i][0];
  }
  // A vector's whole chain before the next one's: fewer live registers.
  const int vectors = n_.schedule.vec_outer ? n_.vectors : 1;
  for (int v = 0; v < vectors; ++v)
    for (std::size_t i = 0; i < count; ++i) {
      if (level_[i] != depth || !varying_[i]) continue;
      values_[i].resize(static_cast<std::size_t>(vectors));
      values_[i][static_cast<std::size_t>(v)] = emit_one(i, v, copy, lanes_valid(v));
    }
}

bool StageEmitter::already_rounded(int id, DType dtype) const {
  const auto& inst = stage_.expr.insts[static_cast<std::size_t>(id)];
  if (inst.dtype == dtype) return true;
  if (inst.op == Opcode::kInput && stage_.expr.inputs[static_cast<std::size_t>(inst.imm)] == dtype)
    return static_cast<std::size_t>(inst.imm) < s_.loads.size();
  return inst.op == Opcode::kCast && stage_.expr.insts[static_cast<std::size_t>(inst.a)].dtype == dtype;
}

/// Results of one point: `copy` of the innermost loop's body, with `valid` lanes along it when those are the lanes.
void StageEmitter::finish_point(int copy, int valid) {
  auto& b = n_.b;
  const auto& sched = n_.schedule;
  const int vectors = sched.vec_outer ? n_.vectors : 1;
  for (int v = 0; v < vectors; ++v) {
    const auto vi = static_cast<std::size_t>(v);
    for (std::size_t r = 0; r < stage_.results.size(); ++r) {
      const int id = stage_.expr.results[r];
      const DType dtype = stage_.expr.insts[static_cast<std::size_t>(id)].dtype;
      Value* value = operand(id, v, lanes_ > 1);
      if (const auto* local = std::get_if<ir::LocalResult>(&stage_.results[r])) {
        auto& values = n_.locals[static_cast<std::size_t>(local->local)];
        values.resize(static_cast<std::size_t>(vectors));
        values[vi] = value;
      } else if (std::holds_alternative<ir::StoreResult>(stage_.results[r])) {
        const auto& a = s_.stores[r];
        const bool rounded = is_half(a.dtype) && already_rounded(id, a.dtype);
        if (compute_type(a.dtype) != compute_type(dtype)) value = emit_cast(b, dtype, compute_type(a.dtype), value);
        const int lanes_valid = vec_inner_ ? valid : sched.vec_outer && v + 1 == vectors ? n_.valid : lanes_;
        emit_store(b, value, address(a, state_.store_at[r], n_.nest.num_inputs, distance(a, v, copy)), a.dtype,
                   stride_of(a, sched.vec_dim), lanes_, lanes_valid, rounded);
      } else {
        const auto it =
            std::find_if(reductions_.begin(), reductions_.end(), [&](const auto& x) { return x.result == r; });
        if (vec_inner_ && valid < lanes_)
          value = b.CreateSelect(prefix_mask(b.getContext(), lanes_, valid), value,
                                 reduce_identity(b.getContext(), it->op, it->dtype, lanes_));
        Value* slot = it->slots[vi][static_cast<std::size_t>(copy)];
        b.CreateStore(emit_reduce(b, it->op, it->dtype, value, b.CreateLoad(value->getType(), slot)), slot);
      }
    }
  }
}

void StageEmitter::run(int row) {
  const int depth = n_.schedule.outer_depth();
  const State before = save();
  begin_reductions();
  emit_level(depth, row, lanes_);
  if (s_.loops.empty()) finish_point(row, lanes_);
  else emit_loops(0);
  end_reductions();
  restore(before);
}

void StageEmitter::emit_loops(std::size_t loop) {
  auto& b = n_.b;
  const auto l = static_cast<int>(loop);
  const int64_t extent = n_.schedule.extent(s_.loops[loop]);
  const auto i64 = [&](int64_t v) { return b.getInt64(static_cast<std::uint64_t>(v)); };
  const bool chunked = s_.chunk_loop == l;
  if (loop + 1 == s_.loops.size()) {
    const int64_t step = int64_t{s_.unroll} * (vec_inner_ ? lanes_ : 1);
    const int64_t main = extent / step * step;
    if (!chunked) {
      emit_innermost(i64(0), i64(main));
      return emit_leftovers();
    }
    emit_loop(b, i64(0), i64(main), s_.chunk_block, [&](Value* block) {
      reset_chunk();
      Value* end = b.CreateAdd(block, i64(s_.chunk_block));
      emit_innermost(block, b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, i64(main)));
      flush_chunk();
    });
    if (main == extent) return;
    reset_chunk();
    emit_leftovers();
    return flush_chunk();
  }
  const auto body = [&](Value* i) {
    const State before = save();
    const int depth = n_.schedule.outer_depth() + 1 + l;
    add_index({{s_.loops[loop], i}});
    emit_level(depth, 0, lanes_);
    emit_loops(loop + 1);
    restore(before);
  };
  if (!chunked) return emit_loop(b, i64(0), i64(extent), 1, body);
  emit_loop(b, i64(0), i64(extent), s_.chunk_block, [&](Value* block) {
    reset_chunk();
    Value* end = b.CreateAdd(block, i64(s_.chunk_block));
    emit_loop(b, block, b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, i64(extent)), 1, body);
    flush_chunk();
  });
}

void StageEmitter::emit_innermost(Value* lo, Value* hi) {
  const int depth = n_.schedule.outer_depth() + static_cast<int>(s_.loops.size());
  const int64_t step = int64_t{s_.unroll} * (vec_inner_ ? lanes_ : 1);
  emit_loop(n_.b, lo, hi, step, [&](Value* i) {
    const State before = save();
    add_index({{s_.loops.back(), i}});
    for (int copy = 0; copy < s_.unroll; ++copy) {
      emit_level(depth, copy, lanes_);
      finish_point(copy, lanes_);
    }
    restore(before);
  });
}

/// Fewer iterations than a body of `unroll` copies has, and the lanes that fill no vector.
void StageEmitter::emit_leftovers() {
  const int depth = n_.schedule.outer_depth() + static_cast<int>(s_.loops.size());
  const int64_t extent = n_.schedule.extent(s_.loops.back()), width = vec_inner_ ? lanes_ : 1;
  const int64_t done = extent / (s_.unroll * width) * (s_.unroll * width);
  if (done == extent) return;
  const State before = save();
  add_index({{s_.loops.back(), n_.b.getInt64(static_cast<std::uint64_t>(done))}});
  for (int copy = 0; done + copy * width < extent; ++copy) {
    const auto valid = static_cast<int>(std::min<int64_t>(width, extent - done - copy * width));
    emit_level(depth, copy, vec_inner_ ? valid : lanes_);
    finish_point(copy, vec_inner_ ? valid : lanes_);
  }
  restore(before);
}

}  // namespace undertow::codegen
