// SPDX-License-Identifier: Apache-2.0
// Candidates that any op may list.
#include <cstring>

#include "undertow/backend/cpu/convert.h"
#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/base/check.h"

namespace undertow::backend::cpu {
namespace {

/// Runs a float32 kernel between conversions of its half arguments. Scratch: the widened arguments, then the kernel's.
class WidenedKernel : public Kernel {
 public:
  WidenedKernel(const NodeView& node, std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {
    std::size_t at = 0;
    const auto add = [&](const ir::TensorType& t, bool is_input) {
      Part p{t.dtype, t.shape.numel(), is_input, is_half(t.dtype), at};
      if (p.half) at += aligned(static_cast<std::size_t>(p.count) * sizeof(float));
      parts_.push_back(p);
    };
    for (const auto& t : node.in) add(t, true);
    for (const auto& t : node.out) add(t, false);
    widened_bytes_ = at;
  }
  std::size_t scratch_bytes() const override { return widened_bytes_ + inner_->scratch_bytes(); }
  std::string description() const override { return "widened " + inner_->description(); }

  void unbind() override {
    bound_.clear();
    inner_->unbind();
  }
  Instr bind(std::span<void* const> args) override {
    Bound& b = bound_.next();
    b.kernel = this;
    b.args.assign(args.begin(), args.end());
    auto* scratch = static_cast<std::byte*>(args[parts_.size()]);
    std::vector<void*> inner;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      inner.push_back(parts_[i].half ? scratch + parts_[i].offset : args[i]);
    b.widened = inner;
    inner.push_back(scratch + widened_bytes_);
    b.inner = inner_->bind(inner);
    return {[](void* context, ir::StepError* error) {
              const auto& bound = *static_cast<const Bound*>(context);
              bound.kernel->run(bound, error);
            },
            &b};
  }

 private:
  struct Part {
    DType dtype;
    std::int64_t count;
    bool input, half;
    std::size_t offset;
  };
  struct Bound {
    const WidenedKernel* kernel;
    std::vector<void*> args, widened;
    Instr inner;
  };
  void run(const Bound& b, ir::StepError* error) const {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (const Part& p = parts_[i]; p.half && p.input)
        widen(p.dtype, b.args[i], static_cast<float*>(b.widened[i]), p.count);
    b.inner.run(b.inner.context, error);
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (const Part& p = parts_[i]; p.half && !p.input)
        narrow(p.dtype, static_cast<const float*>(b.widened[i]), b.args[i], p.count);
  }

  std::unique_ptr<Kernel> inner_;
  std::vector<Part> parts_;
  std::size_t widened_bytes_ = 0;
  Contexts<Bound> bound_;
};

}  // namespace

Choice widened(const NodeView& node) {
  NodeView wide = node;
  bool any = false;
  for (auto* types : {&wide.in, &wide.out})
    for (auto& t : *types)
      if (is_half(t.dtype)) {
        t.dtype = DType::kFloat32;
        any = true;
      }
  if (!any) return Choice::decline("no half types");
  return {std::make_unique<WidenedKernel>(node, choose_kernel(wide))};
}

Choice zero_fill(const NodeView& node) {
  bool empty_out = true, empty_in = false;
  for (const auto& t : node.out) empty_out &= t.shape.numel() == 0;
  for (const auto& t : node.in) empty_in |= t.shape.numel() == 0;
  if (!empty_out && !empty_in) return Choice::decline("not empty");
  std::vector<std::size_t> bytes;
  for (const auto& t : node.out) bytes.push_back(bytes_of(t));
  return Choice::run("zero:" + node.op->name, [bytes, first = node.in.size()](void* const* args, ir::StepError*) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i]) std::memset(args[first + i], 0, bytes[i]);
  });
}

Choice reference_kernel(const NodeView& node) {
  if (!node.op->reference) return Choice::decline("the op has no reference function");
  return Choice::run("reference:" + node.op->name, [op = node.op, attrs = *node.attrs, id = node.id, in = node.in,
                                                    out = node.out](void* const* args, ir::StepError* error) {
    std::vector<ir::HostArray> x, y;
    for (const auto& t : in) x.push_back({*args++, t.dtype, t.shape});
    for (const auto& t : out) y.push_back({*args++, t.dtype, t.shape});
    ir::StepError found;
    op->reference(x, y, attrs, &found);
    if (found.code == ir::StepError::kNone) return;
    if (found.node < 0) found.node = id;
    report(error, found);
  });
}

}  // namespace undertow::backend::cpu
