// SPDX-License-Identifier: Apache-2.0
// backend/cpu/kernel.h: what every kernel of this backend is made of: the node it computes, and a function over
// pointers.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "undertow/backend/backend.h"
#include "undertow/ir/graph.h"

namespace undertow::backend::cpu {

/// A node with its types at hand. Attributes fall back to the op's defaults.
struct NodeView {
  const ir::OpDef* op = nullptr;
  const ir::Attrs* attrs = nullptr;
  std::int32_t id = -1;  // of the node, for StepError
  std::vector<ir::TensorType> in, out;

  NodeView() = default;
  NodeView(const ir::Graph& graph, ir::NodeId node);

  const ir::AttrValue& attr(std::string_view name) const;
  bool flag(std::string_view name) const { return std::get<bool>(attr(name)); }
  std::int64_t integer(std::string_view name) const { return std::get<std::int64_t>(attr(name)); }
  double number(std::string_view name) const;  // any kind of number
  const std::string& text(std::string_view name) const { return std::get<std::string>(attr(name)); }
  const std::vector<std::int64_t>& ints(std::string_view name) const {
    return std::get<std::vector<std::int64_t>>(attr(name));
  }
  std::size_t num_args() const { return in.size() + out.size(); }
};

inline std::size_t bytes_of(const ir::TensorType& t) {
  return static_cast<std::size_t>(t.shape.numel()) * size_of(t.dtype);
}
/// Sizes of scratch parts are kept multiples of a cache line, so that the parts stay aligned.
inline std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// args: inputs, outputs, scratch (null when none was asked for). Thread-safe and immutable: all state is in the
/// pointers.
using RunFn = std::function<void(void* const* args, ir::StepError* error)>;

/// The contexts of a kernel's Instrs. Addresses are stable; cleared ones are kept and given out again, so that eager
/// execution, which binds and unbinds at every call, allocates nothing.
template <typename T>
class Contexts {
 public:
  T& next() { return used_ < all_.size() ? all_[used_++] : (++used_, all_.emplace_back()); }
  void clear() { used_ = 0; }

 private:
  std::deque<T> all_;
  std::size_t used_ = 0;
};

/// A kernel that is one function.
class FunctionKernel : public Kernel {
 public:
  FunctionKernel(std::string description, std::size_t scratch, RunFn run);
  std::size_t scratch_bytes() const override { return scratch_; }
  Instr bind(std::span<void* const> args) override;
  void unbind() override { bound_.clear(); }
  std::string description() const override { return description_; }

 private:
  struct Bound {
    const FunctionKernel* kernel;
    std::vector<void*> args;
  };
  std::string description_;
  std::size_t scratch_;
  RunFn run_;
  int threads_;  // scratch was sized for so many: it never runs on more
  Contexts<Bound> bound_;
};

/// A kernel, or why this candidate does not take the node.
struct Choice {
  std::unique_ptr<Kernel> kernel;
  std::string declined;

  Choice(std::unique_ptr<Kernel> k) : kernel(std::move(k)) {}
  static Choice decline(std::string why) {
    Choice c(nullptr);
    c.declined = std::move(why);
    return c;
  }
  static Choice run(std::string description, RunFn f, std::size_t scratch = 0) {
    return {std::make_unique<FunctionKernel>(std::move(description), scratch, std::move(f))};
  }
};

/// Records the first error of a step.
void report(ir::StepError* error, const ir::StepError& found);

}  // namespace undertow::backend::cpu
