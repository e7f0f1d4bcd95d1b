// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/reference/backend.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "undertow/backend/host/control.h"
#include "undertow/backend/host/launch.h"
#include "undertow/backend/reference/expr_eval.h"
#include "undertow/base/check.h"

namespace undertow::backend {
namespace {

using reference::ExprEval;

/// What a kernel keeps of its node: it outlives the graph.
struct NodeInfo {
  std::vector<ir::TensorType> in, out;
  std::int32_t node;
  const ir::OpDef* op;
  ir::Attrs attrs;
  ir::Expr expr;  // elementwise ops
};

/// Part common to both kinds: each bind makes a context of its own, which the kernel owns.
template <typename Context>
class ReferenceKernel : public Kernel {
 public:
  explicit ReferenceKernel(NodeInfo info) : info_(std::move(info)) {}

  Instr bind(std::span<void* const> args) final {
    const std::size_t used = info_.in.size() + info_.out.size();
    UNDERTOW_ASSERT(args.size() >= used);
    bound_.push_back(std::make_unique<Context>(info_, args.first(used)));
    return {[](void* context, ir::StepError* error) { static_cast<Context*>(context)->run(error); },
            bound_.back().get()};
  }
  void unbind() final { bound_.clear(); }
  std::string description() const final { return "reference:" + info_.op->name; }

 protected:
  const NodeInfo info_;

 private:
  std::vector<std::unique_ptr<Context>> bound_;
};

/// An op with a reference function.
struct FunctionContext {
  FunctionContext(const NodeInfo& info, std::span<void* const> args) : info(info) {
    std::size_t next = 0;
    for (const auto& t : info.in) in.push_back({args[next++], t.dtype, t.shape});
    for (const auto& t : info.out) out.push_back({args[next++], t.dtype, t.shape});
  }
  void run(ir::StepError* error) const {
    const bool clean = error && error->code == ir::StepError::kNone;
    info.op->reference(in, out, info.attrs, error);
    if (clean && error->code != ir::StepError::kNone) error->node = info.node;
  }

  const NodeInfo& info;
  std::vector<ir::HostArray> in, out;
};

/// An input of an elementwise op as the blocks of the output see it.
class BlockReader {
 public:
  BlockReader(const ir::TensorType& type, const Shape& out, const void* data)
      : data_(static_cast<const std::byte*>(data)), element_(size_of(type.dtype)), out_(out) {
    if (type.shape.numel() == out.numel()) return;  // same order of elements, whatever the ones in its shape
    const auto dense = contiguous_strides(type.shape);
    strides_.resize(out.size());
    for (int d = type.shape.rank() - 1, o = out.rank() - 1; d >= 0; --d, --o)
      strides_[o] = type.shape[d] == 1 ? 0 : dense[d];
    block_.resize(ExprEval::kBlock * element_);
  }
  /// Elements start .. start + n of the broadcast input, dense.
  const void* read(std::int64_t start, int n) {
    if (strides_.empty()) return data_ + static_cast<std::size_t>(start) * element_;
    std::array<std::int64_t, Shape::kMaxRank> index{};
    std::int64_t offset = 0;
    for (int d = out_.rank() - 1; d >= 0; --d) {
      index[d] = start % out_[d];
      start /= out_[d];
      offset += index[d] * strides_[d];
    }
    for (int i = 0; i < n; ++i) {
      std::memcpy(block_.data() + static_cast<std::size_t>(i) * element_,
                  data_ + static_cast<std::size_t>(offset) * element_, element_);
      for (int d = out_.rank() - 1; d >= 0; --d) {
        offset += strides_[d];
        if (++index[d] < out_[d]) break;
        offset -= strides_[d] * out_[d];
        index[d] = 0;
      }
    }
    return block_.data();
  }

 private:
  const std::byte* data_;
  std::size_t element_;
  Shape out_;
  std::vector<std::int64_t> strides_;  // empty: dense
  std::vector<std::byte> block_;
};

ir::Expr build_expr(const NodeInfo& info) {
  ir::ExprBuilder builder;
  std::vector<ir::Scalar> inputs;
  for (const auto& t : info.in) inputs.push_back(builder.input(static_cast<int>(inputs.size()), t.dtype));
  builder.result(builder.cast(info.op->expr(builder, inputs, info.attrs), compute_type(info.out[0].dtype)));
  return builder.take();
}

/// An elementwise op: its scalar expression, block by block.
struct ExprContext {
  ExprContext(const NodeInfo& info, std::span<void* const> args)
      : type(info.out[0]), out(static_cast<std::byte*>(args.back())), eval(info.expr) {
    for (std::size_t i = 0; i < info.in.size(); ++i) readers.emplace_back(info.in[i], type.shape, args[i]);
    blocks.resize(readers.size());
  }
  void run(ir::StepError*) {
    const std::int64_t total = type.shape.numel();
    for (std::int64_t at = 0; at < total; at += ExprEval::kBlock) {
      const int n = static_cast<int>(std::min<std::int64_t>(ExprEval::kBlock, total - at));
      for (std::size_t i = 0; i < readers.size(); ++i) blocks[i] = readers[i].read(at, n);
      eval.run(blocks, at, n);
      eval.store(0, type.dtype, out + static_cast<std::size_t>(at) * size_of(type.dtype), n);
    }
  }

  ir::TensorType type;
  std::byte* out;
  ExprEval eval;
  std::vector<BlockReader> readers;
  std::vector<const void*> blocks;
};

class ExprKernel final : public ReferenceKernel<ExprContext> {
 public:
  using ReferenceKernel::ReferenceKernel;
  /// A block is read before it is written, and elements of equal size cover each other exactly.
  bool in_place(int output, int input) const override {
    const ir::TensorType &in = info_.in[static_cast<std::size_t>(input)], &out = info_.out[0];
    return output == 0 && in.shape.numel() == out.shape.numel() && size_of(in.dtype) == size_of(out.dtype);
  }
};

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  const Caps& caps() const override { return caps_; }

  std::vector<std::unique_ptr<Kernel>> make_kernels(const ir::Graph& graph) override {
    std::vector<std::unique_ptr<Kernel>> kernels;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) kernels.push_back(make_kernel(graph, i));
    return kernels;
  }
  std::unique_ptr<Kernel> make_control(const ir::Node& node, std::vector<RegionBody> bodies) override {
    return host_control(node, std::move(bodies));
  }
  LaunchResult launch(Program& program, const LaunchArgs& args) override { return host_launch(program, args); }

 private:
  static std::unique_ptr<Kernel> make_kernel(const ir::Graph& graph, std::size_t id) {
    const ir::Node& node = graph.nodes[id];
    if (node.op->view || node.op->num_regions > 0) return nullptr;
    UNDERTOW_CHECK(!node.nest, DeviceError, "node {} is fused, and the reference device does not run fused nodes", id);
    NodeInfo info{.node = static_cast<std::int32_t>(id), .op = node.op, .attrs = node.attrs};
    for (const auto v : node.inputs) info.in.push_back(graph.type(v));
    for (const auto v : node.outputs) info.out.push_back(graph.type(v));
    if (node.op->expr) {
      info.expr = build_expr(info);
      return std::make_unique<ExprKernel>(std::move(info));
    }
    UNDERTOW_CHECK(node.op->reference, DeviceError, "operator '{}' has no reference kernel", node.op->name);
    return std::make_unique<ReferenceKernel<FunctionContext>>(std::move(info));
  }

  Caps caps_{.fuse = false, .channel_block = 0, .half = std::nullopt};
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace undertow::backend
