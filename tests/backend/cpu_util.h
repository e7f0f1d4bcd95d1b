// SPDX-License-Identifier: Apache-2.0
// tests/backend/cpu_util.h: run one node by any candidate kernel and hold the result against the op's reference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "undertow/backend/cpu/compute_lock.h"
#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/parallel.h"
#include "undertow/base/memory.h"
#include "undertow/ir/op_set.h"
#include "undertow/ops/register.h"

namespace undertow::test {

using Ints = std::vector<std::int64_t>;
using MakeKernel = backend::cpu::Choice (*)(const backend::cpu::NodeView&);

/// Aligned bytes with a guard behind them: writing past the end is seen. Under AddressSanitizer there is none, so that
/// reading past the end is seen too.
class Buffer {
 public:
#ifdef __SANITIZE_ADDRESS__
  static constexpr std::size_t kGuard = 0;
#else
  static constexpr std::size_t kGuard = 64;
#endif
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    void* p = nullptr;
    if (posix_memalign(&p, 64, bytes + kGuard) != 0) throw std::bad_alloc();
    data_.reset(static_cast<std::byte*>(p));
    std::memset(p, 0xCB, bytes + kGuard);
  }
  std::byte* data() { return data_.get(); }
  std::size_t size() const { return bytes_; }
  bool intact() {
    for (std::size_t i = 0; i < kGuard; ++i)
      if (data()[bytes_ + i] != std::byte{0xCB}) return false;
    return true;
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

/// One node with its inputs in memory.
struct Node {
  Node(const char* op, ir::Attrs attributes, std::vector<ir::TensorType> in) : attrs(std::move(attributes)) {
    ops::register_all();
    view.op = &ir::op_set().get(op);
    view.attrs = &attrs;
    view.id = 7;
    view.in = std::move(in);
    view.out = view.op->infer(view.in, attrs);
    for (const auto& t : view.in) inputs.emplace_back(backend::cpu::bytes_of(t));
  }
  Node(const Node&) = delete;

  /// Random floats (or small integers) in every input.
  Node& random(unsigned seed = 1) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      dispatch(view.in[i].dtype, [&](auto tag) {
        using T = decltype(tag);
        auto* p = reinterpret_cast<T*>(inputs[i].data());
        for (std::int64_t j = 0; j < view.in[i].shape.numel(); ++j) {
          const float v = uniform(engine);
          if constexpr (std::is_integral_v<T>) p[j] = static_cast<T>(v * 50);
          else p[j] = static_cast<T>(v);
        }
      });
    return *this;
  }
  template <typename T>
  T* input(std::size_t i) {
    return reinterpret_cast<T*>(inputs[i].data());
  }

  std::vector<Buffer> outputs() const {
    std::vector<Buffer> out;
    for (const auto& t : view.out) out.emplace_back(backend::cpu::bytes_of(t));
    return out;
  }
  std::vector<Buffer> reference(ir::StepError* error = nullptr) {
    std::vector<Buffer> out = outputs();
    std::vector<ir::HostArray> x, y;
    for (std::size_t i = 0; i < inputs.size(); ++i) x.push_back({inputs[i].data(), view.in[i].dtype, view.in[i].shape});
    for (std::size_t i = 0; i < out.size(); ++i) y.push_back({out[i].data(), view.out[i].dtype, view.out[i].shape});
    ir::StepError none;
    view.op->reference(x, y, attrs, error ? error : &none);
    return out;
  }
  std::vector<Buffer> run(backend::Kernel& kernel, ir::StepError* error = nullptr) {
    std::vector<Buffer> out = outputs();
    Buffer scratch(kernel.scratch_bytes());
    std::vector<void*> args;
    for (auto& b : inputs) args.push_back(b.data());
    for (auto& b : out) args.push_back(b.data());
    args.push_back(scratch.data());
    const backend::Instr instr = kernel.bind(args);
    ir::StepError none;
    instr.run(instr.context, error ? error : &none);
    EXPECT_TRUE(scratch.intact()) << kernel.description() << " writes past its scratch";
    for (auto& b : out) EXPECT_TRUE(b.intact()) << kernel.description() << " writes past its result";
    kernel.unbind();
    return out;
  }

  backend::cpu::NodeView view;
  ir::Attrs attrs;
  std::vector<Buffer> inputs;
};

/// |a - b| <= tolerance * (1 + |b|), NaN equal to NaN, for all outputs.
inline void expect_near(const Node& node, std::vector<Buffer>& got, std::vector<Buffer>& want, double tolerance,
                        const std::string& what) {
  for (std::size_t o = 0; o < got.size(); ++o)
    dispatch(node.view.out[o].dtype, [&](auto tag) {
      using T = decltype(tag);
      const auto number = [](T v) {
        if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(v);
        else return static_cast<double>(static_cast<float>(v));
      };
      const auto *a = reinterpret_cast<const T*>(got[o].data()), *b = reinterpret_cast<const T*>(want[o].data());
      for (std::int64_t i = 0, bad = 0; i < node.view.out[o].shape.numel() && bad < 3; ++i) {
        const double x = number(a[i]), y = number(b[i]);
        if ((std::isnan(x) && std::isnan(y)) || x == y || std::abs(x - y) <= tolerance * (1 + std::abs(y))) continue;
        ++bad;
        ADD_FAILURE() << what << ": output " << o << " [" << i << "] is " << x << ", expected " << y;
      }
    });
}

inline bool same_bits(std::vector<Buffer>& a, std::vector<Buffer>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].data(), b[i].data(), a[i].size()) != 0) return false;
  return true;
}

/// Runs the candidate at one and two threads. False when it declines. Kernels of our own must give the same bits.
inline bool check_kernel(Node& node, MakeKernel make, double tolerance, const std::string& what) {
  std::vector<Buffer> want = node.reference();
  std::vector<std::vector<Buffer>> results;
  std::string name;
  for (const int threads : {1, 2}) {
    const backend::cpu::ScopedThreads scoped(threads);
    const backend::cpu::ComputeLock lock;
    backend::cpu::Choice choice = make(node.view);
    if (!choice.kernel) return false;
    name = choice.kernel->description();
    results.push_back(node.run(*choice.kernel));
    expect_near(node, results.back(), want, tolerance, what + " by " + name + " threads " + std::to_string(threads));
  }
  if (name.find("onednn") == std::string::npos) {
    EXPECT_TRUE(same_bits(results[0], results[1])) << what << " by " << name << ": bits depend on the thread count";
  }
  return true;
}

/// The kernel that dispatch chooses.
inline backend::cpu::Choice chosen(const backend::cpu::NodeView& view) { return {backend::cpu::choose_kernel(view)}; }

}  // namespace undertow::test
