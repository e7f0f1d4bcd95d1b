// SPDX-License-Identifier: Apache-2.0
// Accumulators: slots per vector and copy, added up in a fixed order; chunks of float32 go through float64.
#include "undertow/base/check.h"
#include "undertow/codegen/emit_stage.h"

namespace undertow::codegen {
namespace {

using llvm::Value;

bool chunks(ir::ReduceOp op, DType dtype) {
  return is_floating(dtype) && (op == ir::ReduceOp::kSum || op == ir::ReduceOp::kProd);
}

Value* new_slot(Builder& b, llvm::Type* type) {
  auto& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  Builder at_entry(&entry, entry.begin());
  return at_entry.CreateAlloca(type);
}

}  // namespace

void StageEmitter::begin_reductions() {
  auto& b = n_.b;
  auto& c = b.getContext();
  for (auto& r : reductions_) {
    const auto vectors = static_cast<std::size_t>(n_.schedule.vec_outer ? n_.vectors : 1);
    llvm::Type* type = register_type(c, r.dtype, lanes_);
    while (r.slots.size() < vectors) {
      auto& copies = r.slots.emplace_back();
      for (int u = 0; u < s_.unroll; ++u) copies.push_back(new_slot(b, type));
      if (s_.chunk_loop >= 0 && chunks(r.op, r.dtype))
        r.outer_slots.push_back(new_slot(b, register_type(c, DType::kFloat64, lanes_)));
    }
    for (std::size_t v = 0; v < vectors; ++v) {
      for (Value* slot : r.slots[v]) b.CreateStore(reduce_identity(c, r.op, r.dtype, lanes_), slot);
      if (!r.outer_slots.empty()) b.CreateStore(reduce_identity(c, r.op, DType::kFloat64, lanes_), r.outer_slots[v]);
    }
  }
}

void StageEmitter::reset_chunk() {
  auto& c = n_.b.getContext();
  for (auto& r : reductions_)
    for (std::size_t v = 0; !r.outer_slots.empty() && v < static_cast<std::size_t>(n_.vectors); ++v)
      for (Value* slot : r.slots[v]) n_.b.CreateStore(reduce_identity(c, r.op, r.dtype, lanes_), slot);
}

/// The copies' accumulators, pairwise.
Value* StageEmitter::combined(const Reduction& r, int vector) {
  auto& b = n_.b;
  std::vector<Value*> parts;
  for (Value* slot : r.slots[static_cast<std::size_t>(vector)])
    parts.push_back(b.CreateLoad(register_type(b.getContext(), r.dtype, lanes_), slot));
  while (parts.size() > 1) {
    const std::size_t half = (parts.size() + 1) / 2;
    for (std::size_t i = 0; i + half < parts.size(); ++i)
      parts[i] = emit_reduce(b, r.op, r.dtype, parts[i + half], parts[i]);
    parts.resize(half);
  }
  return parts[0];
}

void StageEmitter::flush_chunk() {
  auto& b = n_.b;
  llvm::Type* f64 = register_type(b.getContext(), DType::kFloat64, lanes_);
  for (auto& r : reductions_)
    for (int v = 0; !r.outer_slots.empty() && v < n_.vectors; ++v) {
      Value* slot = r.outer_slots[static_cast<std::size_t>(v)];
      Value* part = emit_cast(b, r.dtype, DType::kFloat64, combined(r, v));
      b.CreateStore(emit_reduce(b, r.op, DType::kFloat64, part, b.CreateLoad(f64, slot)), slot);
    }
}

void StageEmitter::end_reductions() {
  auto& b = n_.b;
  for (auto& r : reductions_) {
    auto& local = n_.locals[static_cast<std::size_t>(r.local)];
    const int vectors = n_.schedule.vec_outer ? n_.vectors : 1;
    local.resize(static_cast<std::size_t>(vectors));
    for (int v = 0; v < vectors; ++v) {
      const bool chunked = !r.outer_slots.empty();
      const DType dtype = chunked ? DType::kFloat64 : r.dtype;
      Value* value = chunked ? b.CreateLoad(register_type(b.getContext(), dtype, lanes_),
                                            r.outer_slots[static_cast<std::size_t>(v)])
                             : combined(r, v);
      if (vec_inner_) value = emit_horizontal(b, r.op, dtype, value);
      local[static_cast<std::size_t>(v)] = emit_cast(b, dtype, r.dtype, value);
    }
  }
}

}  // namespace undertow::codegen
