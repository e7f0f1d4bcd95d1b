// SPDX-License-Identifier: Apache-2.0
// The meaning of a loop nest, point by point in plain scalar code, and helpers to build and compare nests.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "undertow/codegen/codegen.h"
#include "undertow/ir/loop_nest.h"

namespace undertow::codegen_test {

/// A buffer of `count` elements, zero at first, with guard bytes around it.
class Buffer {
 public:
  Buffer(DType dtype, std::int64_t count);
  void* data() { return bytes_.data() + kGuard; }
  const void* data() const { return bytes_.data() + kGuard; }
  template <typename T>
  T* as() {
    return static_cast<T*>(data());
  }
  DType dtype() const { return dtype_; }
  std::int64_t count() const { return count_; }
  double get(std::int64_t i) const;        // as double; int64 beyond 2^53 loses bits
  void set(std::int64_t i, double value);  // converted, halves rounded
  bool guards_intact() const;
  bool same_bytes(const Buffer& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr std::size_t kGuard = 256;
  DType dtype_;
  std::int64_t count_;
  std::vector<std::uint8_t> bytes_;
};

void interpret(const ir::LoopNest& nest, std::vector<Buffer>& buffers);

/// Compiles for this machine, and for 16 lanes; runs all units in one call, then again in every of several splits,
/// backwards: bits must agree. Then compares with the interpreter: floats within `ulps` of the output's type or
/// `absolute`, NaN equal to NaN, the rest exactly. Buffers: inputs then outputs; outputs are the results of generated
/// code afterwards.
void check(const ir::LoopNest& nest, std::vector<Buffer>& buffers, double ulps = 0, double absolute = 0,
           const std::string& what = "");

void run(const codegen::CompiledNest& kernel, std::vector<Buffer>& buffers, std::int64_t begin, std::int64_t end);
codegen::CompiledNest compile_one(const ir::LoopNest& nest);

/// Fills with values that are exact in every type: small integers, for floats with quarters.
void fill(Buffer& buffer, std::uint64_t seed);
/// Uniform in [low, high).
void fill_uniform(Buffer& buffer, double low, double high, std::uint64_t seed);

/// A dense row-major access.
ir::Access dense(int buffer, const std::vector<std::int64_t>& extents);

using Formula = std::function<std::vector<ir::Scalar>(ir::ExprBuilder&, const std::vector<ir::Scalar>&)>;
ir::Expr expression(const std::vector<DType>& inputs, const Formula& formula);

/// out[i...] = formula(in0[i...], ...), all dense, over `extents`.
ir::LoopNest elementwise(const std::vector<std::int64_t>& extents, const std::vector<DType>& inputs, DType output,
                         const std::function<ir::Scalar(ir::ExprBuilder&, const std::vector<ir::Scalar>&)>& formula);

}  // namespace undertow::codegen_test
