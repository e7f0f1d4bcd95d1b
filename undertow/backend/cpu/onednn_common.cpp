// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/cpu/onednn_common.h"

#include <algorithm>

#include "undertow/backend/cpu/compute_lock.h"
#include "undertow/backend/cpu/parallel.h"
#include "undertow/base/check.h"
#include "undertow/codegen/isa.h"

namespace undertow::backend::cpu {
namespace {

dnnl_stream_t stream() {
  static const dnnl_stream_t s = [] {
    dnnl_stream_t made = nullptr;
    dnnl_check(dnnl_stream_create(&made, dnnl_cpu_engine(), dnnl_stream_default_flags), "create a stream");
    return made;
  }();
  return s;
}

dnnl_primitive_attr_t user_scratchpad() {
  static const dnnl_primitive_attr_t a = [] {
    dnnl_primitive_attr_t made = nullptr;
    dnnl_check(dnnl_primitive_attr_create(&made), "create attributes");
    dnnl_check(dnnl_primitive_attr_set_scratchpad_mode(made, dnnl_scratchpad_mode_user), "set the scratchpad mode");
    return made;
  }();
  return a;
}

bool same(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b) { return dnnl_memory_desc_equal(&a, &b) != 0; }

}  // namespace

void dnnl_check(dnnl_status_t status, const char* what) {
  UNDERTOW_CHECK(status == dnnl_success, DeviceError, "oneDNN could not {} (status {})", what,
                 static_cast<int>(status));
}

dnnl_engine_t dnnl_cpu_engine() {
  static const dnnl_engine_t e = [] {
    // One setting for generated code and the library. Refused only when the library was used before: then it stays.
    const codegen::Isa& isa = codegen::host_isa();
    if (!isa.avx512) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    else if (!isa.bf16) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_vnni);
    dnnl_engine_t made = nullptr;
    dnnl_check(dnnl_engine_create(&made, dnnl_cpu, 0), "create its CPU engine");
    return made;
  }();
  return e;
}

dnnl_data_type_t dnnl_type(DType dtype) {
  if (dtype == DType::kFloat32) return dnnl_f32;
  return dtype == DType::kBFloat16 ? dnnl_bf16 : dnnl_data_type_undef;
}

bool dnnl_has_avx512() {
  dnnl_cpu_engine();
  const int isa = static_cast<int>(dnnl_get_effective_cpu_isa());
  return (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
}

bool dnnl_native(DType dtype) {
  if (dtype == DType::kFloat32) return true;
  dnnl_cpu_engine();
  const int isa = static_cast<int>(dnnl_get_effective_cpu_isa());
  return dtype == DType::kBFloat16 && (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
}

dnnl_memory_desc_t dnnl_strided(std::span<const std::int64_t> dims, DType dtype,
                                std::span<const std::int64_t> strides) {
  dnnl_memory_desc_t md;
  dnnl_check(dnnl_memory_desc_init_by_strides(&md, static_cast<int>(dims.size()), dims.data(), dnnl_type(dtype),
                                              strides.data()),
             "describe a tensor");
  return md;
}

dnnl_memory_desc_t dnnl_plain(std::span<const std::int64_t> dims, DType dtype, dnnl_format_tag_t tag) {
  dnnl_memory_desc_t md;
  dnnl_check(dnnl_memory_desc_init_by_tag(&md, static_cast<int>(dims.size()), dims.data(), dnnl_type(dtype), tag),
             "describe a tensor");
  return md;
}

DnnlBuilder::DnnlBuilder(const NodeView& node) : kernel_(std::make_unique<DnnlKernel>()) {
  kernel_->num_args_ = node.num_args();
  kernel_->threads_ = compute_threads();
}

DnnlPrimitiveDesc DnnlBuilder::describe(const void* op_desc, dnnl_primitive_desc_t hint) {
  dnnl_primitive_desc_t made = nullptr;
  if (dnnl_primitive_desc_create(&made, op_desc, user_scratchpad(), dnnl_cpu_engine(), hint) != dnnl_success)
    return nullptr;
  DnnlPrimitiveDesc pd(made);
  return impl_name(pd).starts_with("ref") ? nullptr : std::move(pd);
}

dnnl_memory_desc_t DnnlBuilder::query(const DnnlPrimitiveDesc& pd, dnnl_query_t what) {
  return *dnnl_primitive_desc_query_md(pd.get(), what, 0);
}

std::string DnnlBuilder::impl_name(const DnnlPrimitiveDesc& pd) {
  const char* name = "";
  dnnl_primitive_desc_query(pd.get(), dnnl_query_impl_info_str, 0, &name);
  return name;
}

DnnlPlace DnnlBuilder::reserve(const dnnl_memory_desc_t& md) {
  const DnnlPlace place{-1, kernel_->scratch_};
  kernel_->scratch_ += aligned(dnnl_memory_desc_get_size(&md));
  return place;
}

void DnnlBuilder::reorder(DnnlPlace from, const dnnl_memory_desc_t& from_md, DnnlPlace to,
                          const dnnl_memory_desc_t& to_md) {
  dnnl_primitive_desc_t made = nullptr;
  dnnl_check(dnnl_reorder_primitive_desc_create(&made, &from_md, dnnl_cpu_engine(), &to_md, dnnl_cpu_engine(),
                                                user_scratchpad()),
             "describe a reorder");
  add(DnnlPrimitiveDesc(made), {{DNNL_ARG_FROM, from_md, from}, {DNNL_ARG_TO, to_md, to}});
  ++reorders_;
}

DnnlPlace DnnlBuilder::input(DnnlPlace place, const dnnl_memory_desc_t& have, const dnnl_memory_desc_t& want) {
  if (same(have, want)) return place;
  const DnnlPlace to = reserve(want);
  reorder(place, have, to, want);
  return to;
}

DnnlPlace DnnlBuilder::output(DnnlPlace place, const dnnl_memory_desc_t& have, const dnnl_memory_desc_t& want) {
  return same(have, want) ? place : reserve(want);
}

void DnnlBuilder::finish(DnnlPlace from, const dnnl_memory_desc_t& want, DnnlPlace place,
                         const dnnl_memory_desc_t& have) {
  if (!same(have, want)) reorder(from, want, place, have);
}

void DnnlBuilder::add(const DnnlPrimitiveDesc& pd, std::vector<Operand> operands) {
  dnnl_primitive_t made = nullptr;
  dnnl_check(dnnl_primitive_create(&made, pd.get()), "create a primitive");
  DnnlKernel::Step step{DnnlPrimitive(made), {}};
  for (const auto& o : operands) step.operands.push_back({o.name, o.md, o.place});
  const dnnl_memory_desc_t pad = query(pd, dnnl_query_scratchpad_md);
  kernel_->scratchpad_ = std::max(kernel_->scratchpad_, aligned(dnnl_memory_desc_get_size(&pad)));
  step.operands.push_back({DNNL_ARG_SCRATCHPAD, pad, {}});
  kernel_->steps_.push_back(std::move(step));
}

std::unique_ptr<Kernel> DnnlBuilder::take(std::string description) {
  kernel_->description_ = std::move(description);
  return std::move(kernel_);
}

Instr DnnlKernel::bind(std::span<void* const> args) {
  Bound& b = bound_.next();
  const bool fresh = b.kernel == nullptr;
  b.kernel = this;
  auto* scratch = args.size() > num_args_ ? static_cast<std::byte*>(args[num_args_]) : nullptr;
  UNDERTOW_ASSERT(scratch || scratch_bytes() == 0);
  std::size_t next = 0;
  for (const Step& step : steps_) {
    std::vector<dnnl_exec_arg_t> list;
    for (const Operand& o : step.operands) {
      void* p = o.place.arg >= 0 ? args[static_cast<std::size_t>(o.place.arg)] : scratch + o.place.offset;
      if (o.name == DNNL_ARG_SCRATCHPAD) p = scratch ? scratch + scratch_ : nullptr;
      if (!fresh) {
        dnnl_check(dnnl_memory_set_data_handle(b.memories[next++].get(), p), "set a pointer");
        continue;
      }
      dnnl_memory_t made = nullptr;
      dnnl_check(dnnl_memory_create(&made, &o.md, dnnl_cpu_engine(), p), "create a memory object");
      b.memories.emplace_back(made);
      list.push_back({o.name, made});
    }
    if (fresh) b.args.push_back(std::move(list));
  }
  return {[](void* context, ir::StepError*) {
            const auto& bound = *static_cast<const Bound*>(context);
            bound.kernel->run(bound);
          },
          &b};
}

void DnnlKernel::run(const Bound& bound) const {
  const ComputeLock lock;
  UNDERTOW_CHECK(ComputeLock::may_run_library(threads_), DeviceError, "{}: made for {} compute threads, called with {}",
                 description_, threads_, compute_threads());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const auto& list = bound.args[i];
    dnnl_check(dnnl_primitive_execute(steps_[i].primitive.get(), stream(), static_cast<int>(list.size()), list.data()),
               "run a primitive");
  }
}

}  // namespace undertow::backend::cpu
