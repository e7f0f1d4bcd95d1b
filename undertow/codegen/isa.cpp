// SPDX-License-Identifier: Apache-2.0
#include "undertow/codegen/isa.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/TargetParser/Host.h>

#include <cstdlib>

#include "undertow/base/check.h"

namespace undertow::codegen {
namespace {

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }

Isa choose() {
  const char* env = std::getenv("UNDERTOW_ISA");
  const std::string name = env && *env ? env : "native";
  Isa isa = isa_named(name == "native" ? (has_bf16() ? "avx512_bf16" : has_avx512() ? "avx512" : "avx2") : name);
  UNDERTOW_CHECK(isa.avx512 ? has_avx512() : has_avx2(), DeviceError,
                 "this processor lacks {}, which {} asks for; use UNDERTOW_ISA=native on a machine with AVX2 or later",
                 isa.avx512 ? "AVX-512 (F, BW, CD, DQ, VL)" : "AVX2 and FMA", env ? "UNDERTOW_ISA" : "generated code");
  UNDERTOW_CHECK(!isa.bf16 || has_bf16(), DeviceError,
                 "this processor lacks AVX-512's bfloat16 instructions, which UNDERTOW_ISA asks for; use "
                 "UNDERTOW_ISA=native");
  isa.tune = llvm::sys::getHostCPUName().str();
  return isa;
}

}  // namespace

const Isa& host_isa() {
  static const Isa isa = choose();
  return isa;
}

Isa isa_named(const std::string& name) {
  if (name == "avx2") return {.lanes = 8, .avx512 = false, .cpu = "x86-64-v3", .tune = "generic"};
  if (name == "avx512") return {.lanes = 16, .avx512 = true, .cpu = "x86-64-v4", .tune = "generic"};
  if (name == "avx512_bf16") return {.lanes = 16, .avx512 = true, .bf16 = true, .cpu = "x86-64-v4", .tune = "generic"};
  throw ValueError(fmt::format("UNDERTOW_ISA is \"{}\"; expected avx2, avx512, avx512_bf16 or native", name));
}

}  // namespace undertow::codegen
