// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <vector>

#include "undertow/codegen/emit_scalar.h"

namespace undertow::codegen {
namespace {

using llvm::Value;

llvm::Type* with_lanes(llvm::Type* t, int lanes) {
  return lanes > 1 ? llvm::FixedVectorType::get(t, static_cast<unsigned>(lanes)) : t;
}

/// Memory form to registers.
Value* widen(Builder& b, DType dtype, Value* raw, int lanes) {
  auto& c = b.getContext();
  if (dtype == DType::kBool) return b.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
  if (dtype == DType::kBFloat16) {
    Value* u = b.CreateShl(b.CreateZExt(raw, with_lanes(b.getInt32Ty(), lanes)), 16);
    return b.CreateBitCast(u, register_type(c, DType::kFloat32, lanes));
  }
  if (dtype == DType::kFloat16)
    return b.CreateFPExt(b.CreateBitCast(raw, with_lanes(b.getHalfTy(), lanes)),
                         register_type(c, DType::kFloat32, lanes));
  return raw;
}

/// The 16 bits of a float32 rounded to bfloat16, in an i32: to nearest even, a NaN stays one.
Value* bf16_bits(Builder& b, Value* x) {
  llvm::Type* i32 = x->getType()->getWithNewType(b.getInt32Ty());
  const auto k = [&](std::uint64_t v) { return llvm::ConstantInt::get(i32, v); };
  Value* u = b.CreateBitCast(x, i32);
  Value* high = b.CreateLShr(u, k(16));
  Value* rounded = b.CreateLShr(b.CreateAdd(u, b.CreateAdd(b.CreateAnd(high, k(1)), k(0x7fff))), k(16));
  return b.CreateSelect(b.CreateFCmpUNO(x, x), b.CreateOr(high, k(0x40)), rounded);
}

Value* narrow(Builder& b, DType dtype, Value* x, int lanes, bool rounded) {
  llvm::Type* raw = with_lanes(memory_type(b.getContext(), dtype), lanes);
  if (dtype == DType::kBool) return b.CreateZExt(x, raw);
  if (dtype == DType::kBFloat16) {
    Value* bits = rounded ? b.CreateLShr(b.CreateBitCast(x, with_lanes(b.getInt32Ty(), lanes)), 16) : bf16_bits(b, x);
    return b.CreateTrunc(bits, raw);
  }
  if (dtype == DType::kFloat16) return b.CreateBitCast(b.CreateFPTrunc(x, with_lanes(b.getHalfTy(), lanes)), raw);
  return x;
}

std::vector<int> reversed(int lanes) {
  std::vector<int> order(static_cast<std::size_t>(lanes));
  for (int i = 0; i < lanes; ++i) order[static_cast<std::size_t>(i)] = lanes - 1 - i;
  return order;
}

Value* element_address(Builder& b, llvm::Type* element, Value* base, std::int64_t offset) {
  return offset ? b.CreateGEP(element, base, b.getInt64(static_cast<std::uint64_t>(offset))) : base;
}

}  // namespace

llvm::Type* memory_type(llvm::LLVMContext& c, DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return llvm::Type::getFloatTy(c);
    case DType::kFloat64: return llvm::Type::getDoubleTy(c);
    default: return llvm::Type::getIntNTy(c, static_cast<unsigned>(size_of(dtype) * 8));
  }
}

llvm::Type* register_type(llvm::LLVMContext& c, DType dtype, int lanes) {
  llvm::Type* t = dtype == DType::kBool ? llvm::Type::getInt1Ty(c)
                  : is_half(dtype)      ? llvm::Type::getFloatTy(c)
                                        : memory_type(c, dtype);
  return with_lanes(t, lanes);
}

Value* prefix_mask(llvm::LLVMContext& c, int lanes, int valid) {
  std::vector<llvm::Constant*> bits;
  for (int i = 0; i < lanes; ++i) bits.push_back(llvm::ConstantInt::getBool(c, i < valid));
  return llvm::ConstantVector::get(bits);
}

Value* emit_load(Builder& b, const Isa& isa, Value* address, DType dtype, std::int64_t stride, int lanes, int valid) {
  llvm::Type* element = memory_type(b.getContext(), dtype);
  const llvm::Align align(size_of(dtype));
  if (lanes == 1) return widen(b, dtype, b.CreateAlignedLoad(element, address, align), 1);
  llvm::Type* vector = with_lanes(element, lanes);
  Value* raw = nullptr;
  if (stride == 1) {
    raw =
        valid == lanes
            ? b.CreateAlignedLoad(vector, address, align)
            : static_cast<Value*>(b.CreateMaskedLoad(vector, address, align, prefix_mask(b.getContext(), lanes, valid),
                                                     llvm::Constant::getNullValue(vector)));
  } else if (stride == -1 && valid == lanes) {
    raw = b.CreateAlignedLoad(vector, element_address(b, element, address, 1 - lanes), align);
    raw = b.CreateShuffleVector(raw, reversed(lanes));
  } else if (isa.avx512 && size_of(dtype) >= 4 && valid > lanes / 2) {
    std::vector<llvm::Constant*> offsets;
    for (int i = 0; i < lanes; ++i)
      offsets.push_back(b.getInt64(static_cast<std::uint64_t>(i < valid ? i * stride : 0)));
    raw = b.CreateMaskedGather(vector, b.CreateGEP(element, address, llvm::ConstantVector::get(offsets)), align,
                               prefix_mask(b.getContext(), lanes, valid), llvm::Constant::getNullValue(vector));
  } else {
    // Scalar loads beat the gather instruction on machines with AVX2 only.
    raw = llvm::Constant::getNullValue(vector);
    for (int i = 0; i < valid; ++i) {
      Value* e = b.CreateAlignedLoad(element, element_address(b, element, address, i * stride), align);
      raw = b.CreateInsertElement(raw, e, static_cast<std::uint64_t>(i));
    }
  }
  return widen(b, dtype, raw, lanes);
}

void emit_store(Builder& b, Value* value, Value* address, DType dtype, std::int64_t stride, int lanes, int valid,
                bool rounded) {
  llvm::Type* element = memory_type(b.getContext(), dtype);
  const llvm::Align align(size_of(dtype));
  Value* raw = narrow(b, dtype, value, lanes, rounded);
  if (lanes == 1) {
    b.CreateAlignedStore(raw, address, align);
  } else if (stride == 1) {
    if (valid == lanes) b.CreateAlignedStore(raw, address, align);
    else b.CreateMaskedStore(raw, address, align, prefix_mask(b.getContext(), lanes, valid));
  } else if (stride == -1 && valid == lanes) {
    b.CreateAlignedStore(b.CreateShuffleVector(raw, reversed(lanes)), element_address(b, element, address, 1 - lanes),
                         align);
  } else {
    for (int i = 0; i < valid; ++i)
      b.CreateAlignedStore(b.CreateExtractElement(raw, static_cast<std::uint64_t>(i)),
                           element_address(b, element, address, i * stride), align);
  }
}

std::vector<Value*> emit_transpose(Builder& b, std::vector<Value*> rows) {
  const auto n = static_cast<int>(rows.size());
  std::vector<int> first(rows.size()), second(rows.size());
  for (int block = n / 2; block >= 1; block /= 2) {
    // In every 2x2 arrangement of blocks, the two off the diagonal change places.
    for (int lane = 0; lane < n; ++lane) {
      first[static_cast<std::size_t>(lane)] = lane & block ? n + lane - block : lane;
      second[static_cast<std::size_t>(lane)] = lane & block ? n + lane : lane + block;
    }
    for (int i = 0; i < n; ++i) {
      if (i & block) continue;
      Value*& x = rows[static_cast<std::size_t>(i)];
      Value*& y = rows[static_cast<std::size_t>(i + block)];
      Value* upper = b.CreateShuffleVector(x, y, first);
      y = b.CreateShuffleVector(x, y, second);
      x = upper;
    }
  }
  return rows;
}

Value* round_to_half(Builder& b, DType dtype, Value* x) {
  if (dtype == DType::kBFloat16) return b.CreateBitCast(b.CreateShl(bf16_bits(b, x), 16), x->getType());
  return b.CreateFPExt(b.CreateFPTrunc(x, x->getType()->getWithNewType(b.getHalfTy())), x->getType());
}

}  // namespace undertow::codegen
