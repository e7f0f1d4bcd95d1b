// SPDX-License-Identifier: Apache-2.0
// backend/cpu/onednn_common.h: a kernel that is a short list of oneDNN primitives over arguments and scratch memory.
//
// Everything is made once: primitives when the kernel is built, memory objects and argument arrays when it is bound. A
// step only calls dnnl_primitive_execute. Scratchpads are the user's (ours): part of the kernel's scratch.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <type_traits>

#include "undertow/backend/cpu/kernel.h"

namespace undertow::backend::cpu {

struct DnnlDeleter {
  void operator()(dnnl_memory* m) const { dnnl_memory_destroy(m); }
  void operator()(dnnl_primitive* p) const { dnnl_primitive_destroy(p); }
  void operator()(dnnl_primitive_desc* p) const { dnnl_primitive_desc_destroy(p); }
};
using DnnlMemory = std::unique_ptr<dnnl_memory, DnnlDeleter>;
using DnnlPrimitive = std::unique_ptr<dnnl_primitive, DnnlDeleter>;
using DnnlPrimitiveDesc = std::unique_ptr<dnnl_primitive_desc, DnnlDeleter>;

/// Throws DeviceError naming `what` unless the call succeeded.
void dnnl_check(dnnl_status_t status, const char* what);
dnnl_engine_t dnnl_cpu_engine();

/// The library's name for it; dnnl_data_type_undef for types it has no arithmetic for.
dnnl_data_type_t dnnl_type(DType dtype);
/// Whether the library computes in this type at full speed on this machine (bfloat16 needs instructions for it).
bool dnnl_native(DType dtype);
bool dnnl_has_avx512();

/// Dense memory with dims in the library's order and the given strides (elements).
dnnl_memory_desc_t dnnl_strided(std::span<const std::int64_t> dims, DType dtype, std::span<const std::int64_t> strides);
/// Dense memory in a plain format.
dnnl_memory_desc_t dnnl_plain(std::span<const std::int64_t> dims, DType dtype, dnnl_format_tag_t tag);

/// Where an operand of a primitive lies.
struct DnnlPlace {
  int arg = -1;            // kernel argument; -1: in scratch
  std::size_t offset = 0;  // bytes into scratch
};

class DnnlKernel : public Kernel {
 public:
  std::size_t scratch_bytes() const override { return scratch_ + scratchpad_; }
  Instr bind(std::span<void* const> args) override;
  void unbind() override { bound_.clear(); }
  std::string description() const override { return description_; }

 private:
  friend class DnnlBuilder;
  struct Operand {
    int name;
    dnnl_memory_desc_t md;
    DnnlPlace place;
  };
  struct Step {
    DnnlPrimitive primitive;
    std::vector<Operand> operands;
  };
  struct Bound {
    const DnnlKernel* kernel = nullptr;
    std::vector<DnnlMemory> memories;
    std::vector<std::vector<dnnl_exec_arg_t>> args;  // per step
  };
  void run(const Bound& bound) const;

  std::string description_;
  std::vector<Step> steps_;
  std::size_t num_args_ = 0, scratch_ = 0, scratchpad_ = 0;
  int threads_ = 1;
  Contexts<Bound> bound_;
};

/// Collects the steps of a DnnlKernel. Hold a ComputeLock while one lives.
class DnnlBuilder {
 public:
  explicit DnnlBuilder(const NodeView& node);

  /// Null when the library has no implementation, or only its reference one.
  static DnnlPrimitiveDesc describe(const void* op_desc, dnnl_primitive_desc_t hint = nullptr);
  static dnnl_memory_desc_t query(const DnnlPrimitiveDesc& pd, dnnl_query_t what);
  static std::string impl_name(const DnnlPrimitiveDesc& pd);

  /// The operand `place` of layout `have`, as layout `want`: a reorder into scratch where they differ.
  DnnlPlace input(DnnlPlace place, const dnnl_memory_desc_t& have, const dnnl_memory_desc_t& want);
  /// Where a primitive may write layout `want` so that `finish` can bring it to an argument of layout `have`.
  DnnlPlace output(DnnlPlace place, const dnnl_memory_desc_t& have, const dnnl_memory_desc_t& want);
  void finish(DnnlPlace from, const dnnl_memory_desc_t& want, DnnlPlace place, const dnnl_memory_desc_t& have);

  struct Operand {
    int name;
    dnnl_memory_desc_t md;
    DnnlPlace place;
  };
  void add(const DnnlPrimitiveDesc& pd, std::vector<Operand> operands);
  int reorders() const { return reorders_; }
  std::unique_ptr<Kernel> take(std::string description);

 private:
  DnnlPlace reserve(const dnnl_memory_desc_t& md);
  void reorder(DnnlPlace from, const dnnl_memory_desc_t& from_md, DnnlPlace to, const dnnl_memory_desc_t& to_md);
  std::unique_ptr<DnnlKernel> kernel_;
  int reorders_ = 0;
};

}  // namespace undertow::backend::cpu
