// SPDX-License-Identifier: Apache-2.0
// backend/backend.h: what a device must offer: kernels for a graph's nodes, and a launch that runs N steps by itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "undertow/ir/graph.h"

namespace undertow::backend {

/// What the compiler may ask of a device. Passes see this, never the backend.
struct Caps {
  bool fuse = false;      // accepts nodes that carry a LoopNest
  int channel_block = 0;  // convolutions want activations as [N, C/b, H, W, b]; 0: NCHW (transforms/layout.h)
  /// The half type that it computes in faster than in float32; without one, half types are stored and widened.
  std::optional<DType> half;
};

/// One kernel call with all its pointers resolved. `run` is called on the compute thread once a step.
struct Instr {
  void (*run)(void* context, ir::StepError* error) = nullptr;
  void* context = nullptr;
};

/// A node's compiled kernel. Kernels are immutable after creation and owned by the program that uses them.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Bytes of scratch it wants from the arena (one region is shared by all kernels of a program).
  virtual std::size_t scratch_bytes() const { return 0; }
  /// May write its `output` over its `input` (same element read before it is written).
  virtual bool in_place(int output, int input) const {
    (void)output, (void)input;
    return false;
  }
  /// Runs on the calling thread alone, whatever it is.
  virtual bool serial() const { return false; }
  /// Pointers of the node's inputs, then outputs, then scratch. The Instr's context lives as long as the kernel.
  virtual Instr bind(std::span<void* const> args) = 0;
  /// Drops the contexts of all Instrs that bind gave (eager execution, changed addresses). None of them may run again.
  virtual void unbind() = 0;
  /// Name for the profiler and the dump: "onednn:conv2d jit:avx512", "llvm:fused_3", "reference:matmul".
  virtual std::string description() const = 0;
};

/// A region (ir/graph.h) that is ready to run: its kernels in order, and where the memory of each argument is. The
/// compiler makes it, a device's control-flow kernel owns it.
struct RegionBody {
  struct Address {
    enum Kind : std::uint8_t {
      kArgument,  // the memory that the control-flow kernel gives for argument `index`; see Backend::make_control
      kArena,     // `offset` bytes into the body's own memory
    };
    Kind kind = kArena;
    std::uint32_t index = 0;
    std::size_t offset = 0;
  };
  struct Call {
    std::unique_ptr<Kernel> kernel;
    std::vector<Address> args;  // inputs, outputs, scratch
    std::int32_t node = -1;     // the number that a StepError of this kernel gets; -1: it has regions and knows
  };
  struct Copy {
    Address to, from;
    std::size_t bytes = 0;
  };
  std::vector<Call> calls;
  std::vector<Copy> copies;      // after the calls
  std::vector<Address> outputs;  // where the region's outputs are then
  std::vector<bool> before;      // outputs of a scan that are carries as they were before the trip
  std::vector<std::size_t> input_bytes, output_bytes;
  std::size_t arena_bytes = 0;  // of the body's own memory, the scratch of its kernels included
};

/// One batch of inputs in memory. Column c of the program's batch inputs is at columns[c].
struct Slot {
  int variant = 0;           // which prebuilt argument set of the program
  std::int64_t wait_ns = 0;  // how long the compute thread waited for it
};

/// Where a launch takes its batches from. Called on the compute thread only.
class Feed {
 public:
  virtual ~Feed() = default;
  /// Null: this program's run of batches is over (other shape, end of data, stop, or failure; the feed knows which).
  virtual const Slot* pop() = 0;
  virtual void release(const Slot* slot) = 0;
};

/// What a step leaves behind.
struct StepRecord {
  double loss = 0;
  float learning_rate = 0, loss_scale = 1;
  bool skipped = false;   // the guard held the commit back: a gradient was not finite (loss scaling)
  std::int64_t step = 0;  // steps run so far, this one included
  std::int64_t run_ns = 0, wait_ns = 0;
};

/// A lowered step: flat instructions for each slot variant, over fixed memory.
struct Program {
  struct Variant {
    std::vector<Instr> compute, commit, always;  // a skipped step runs all but `commit`
  };
  std::vector<Variant> variants;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::int64_t* step_counter = nullptr;  // read by ir::Input::kStep; set before each step
  const void* loss = nullptr;            // f32 scalar or null
  std::int64_t loss_count = 1;           // elements; the record holds their mean
  const float* learning_rate = nullptr;
  const bool* skip = nullptr;         // known after `compute`; null: no step is skipped
  const float* loss_scale = nullptr;  // null: 1
};

struct LaunchArgs {
  std::int64_t steps = 0;       // at most
  std::int64_t first_step = 0;  // steps run before this launch
  Feed* feed = nullptr;
  std::span<StepRecord> records;                  // written in order; at least `steps` of them
  std::atomic<std::int64_t>* progress = nullptr;  // records written so far
  const std::atomic<bool>* stop = nullptr;        // honoured at the next step border
  bool stop_on_non_finite = false;                // a non-finite loss is an error, unless the step is skipped
  bool borrowed_thread =
      false;  // not the compute thread: its floating-point mode is put back, no team is opened for it
};

struct LaunchResult {
  std::int64_t steps = 0;  // completed (committed or skipped)
  ir::StepError error;     // code != 0: the step after them failed and changed nothing
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual const Caps& caps() const = 0;
  /// A kernel for every node of a finished graph, in order; null for nodes that are only a view and for those with
  /// regions. Throws DeviceError for a node that the device cannot run.
  virtual std::vector<std::unique_ptr<Kernel>> make_kernels(const ir::Graph& graph) = 0;
  /// The kernel of a node with regions. Its scratch holds the bodies' memory. A body's arguments are, in this order:
  ///   cond   the node's operands, then its outputs: an output that needs no copy is written where it belongs
  ///   while  constants, then carries: both bodies read them; the second writes the carries in place
  ///   scan   constants, carries (written in place), then this trip's elements
  /// The host's devices loop on the compute thread; a GPU may make conditional nodes of its graph from them.
  virtual std::unique_ptr<Kernel> make_control(const ir::Node& node, std::vector<RegionBody> bodies) = 0;
  /// Runs up to `args.steps` steps: pop a slot; compute; guard; commit; always; record. This is the sink: the host is
  /// not woken in between. Called on the compute thread, or for a few tiny steps on one that would only wait for it.
  virtual LaunchResult launch(Program& program, const LaunchArgs& args) = 0;
};

/// "CPU" or "reference". Throws DeviceError naming the known devices.
Backend& get_backend(std::string_view name);

}  // namespace undertow::backend
