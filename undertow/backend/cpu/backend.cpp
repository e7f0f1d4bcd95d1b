// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/cpu/backend.h"

#include "undertow/backend/cpu/compute_lock.h"
#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/nests.h"
#include "undertow/backend/cpu/onednn_common.h"
#include "undertow/backend/cpu/parallel.h"
#include "undertow/backend/host/control.h"
#include "undertow/backend/host/launch.h"
#include "undertow/base/check.h"
#include "undertow/codegen/codegen.h"
#include "undertow/codegen/isa.h"

namespace undertow::backend {
namespace {

using namespace cpu;

/// A compiled loop nest, its units split over the compute threads.
class NestKernel final : public Kernel {
 public:
  NestKernel(codegen::CompiledNest nest, std::shared_ptr<const ir::LoopNest> source, std::vector<std::size_t> elements,
             std::string name)
      : nest_(std::move(nest)), source_(std::move(source)), elements_(std::move(elements)), name_(std::move(name)) {}

  bool in_place(int output, int input) const override {
    const auto out = static_cast<std::size_t>(source_->num_inputs + output), in = static_cast<std::size_t>(input);
    return nest_.in_place_ok && elements_[out] == elements_[in] && nest_in_place(*source_, output, input);
  }
  bool serial() const override { return nest_.units <= 1 || nest_.cost < kSerialBelowNs; }
  void unbind() override { bound_.clear(); }
  std::string description() const override { return "llvm:" + name_; }

  Instr bind(std::span<void* const> args) override {
    Bound& b = bound_.next();
    b.nest = &nest_;
    b.args.assign(args.begin(), args.end());
    return {[](void* context, ir::StepError*) {
              const auto& bound = *static_cast<const Bound*>(context);
              void* const* pointers = bound.args.data();
              parallel_for(bound.nest->units, bound.nest->cost,
                           [&](std::int64_t begin, std::int64_t end) { bound.nest->fn(pointers, begin, end); });
            },
            &b};
  }

 private:
  struct Bound {
    const codegen::CompiledNest* nest;
    std::vector<void*> args;
  };
  codegen::CompiledNest nest_;
  std::shared_ptr<const ir::LoopNest> source_;
  std::vector<std::size_t> elements_;  // bytes of an element, inputs then outputs
  std::string name_;
  Contexts<Bound> bound_;
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "CPU"; }
  const Caps& caps() const override { return caps_; }

  std::vector<std::unique_ptr<Kernel>> make_kernels(const ir::Graph& graph) override {
    std::vector<std::unique_ptr<Kernel>> kernels(graph.nodes.size());
    std::vector<std::shared_ptr<const ir::LoopNest>> nests;
    std::vector<std::size_t> owners;  // node of each nest
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const ir::Node& node = graph.nodes[i];
      if ((node.op->view && !node.nest) || node.op->num_regions > 0) continue;
      std::shared_ptr<const ir::LoopNest> nest = node.nest;
      const NodeView view(graph, static_cast<ir::NodeId>(i));
      if (!nest)
        if (auto made = single_op_nest(view)) nest = std::make_shared<const ir::LoopNest>(std::move(*made));
      if (nest) {
        nests.push_back(std::move(nest));
        owners.push_back(i);
      } else if (node.op->expr) {
        kernels[i] = zero_fill(view).kernel;  // an elementwise op without elements
      } else {
        kernels[i] = choose_kernel(view);
      }
    }
    std::vector<const ir::LoopNest*> pointers;
    for (const auto& n : nests) pointers.push_back(n.get());
    std::vector<codegen::CompiledNest> compiled = codegen::compile(pointers);
    UNDERTOW_ASSERT(compiled.size() == nests.size());
    for (std::size_t i = 0; i < nests.size(); ++i) {
      const ir::Node& node = graph.nodes[owners[i]];
      std::vector<std::size_t> elements;
      for (const auto v : node.inputs) elements.push_back(size_of(graph.type(v).dtype));
      for (const auto v : node.outputs) elements.push_back(size_of(graph.type(v).dtype));
      kernels[owners[i]] =
          std::make_unique<NestKernel>(std::move(compiled[i]), std::move(nests[i]), std::move(elements), node.op->name);
    }
    return kernels;
  }

  std::unique_ptr<Kernel> make_control(const ir::Node& node, std::vector<RegionBody> bodies) override {
    return host_control(node, std::move(bodies));
  }

  LaunchResult launch(Program& program, const LaunchArgs& args) override {
    const ComputeLock lock;
    if (args.borrowed_thread) {
      const ScopedFlushToZero flush;
      return host_launch(program, args);
    }
    // This is the compute thread: it and its team keep the setting. Opening a team for every command would cost more
    // than a tiny step.
    thread_local const bool flushes = (flush_team_to_zero(), true);
    (void)flushes;
    return host_launch(program, args);
  }

 private:
  // The registers' width in float32: oneDNN's own blocked formats (measured: docs/decisions/0008-layout.md).
  Caps caps_{.fuse = true,
             .channel_block = codegen::host_isa().avx512 ? 16 : 8,
             .half = dnnl_native(DType::kBFloat16) ? std::optional(DType::kBFloat16) : std::nullopt};
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace undertow::backend
