// SPDX-License-Identifier: Apache-2.0
// codegen/isa.h: which instruction set the generated code may use. One place decides it for the process.
#pragma once

#include <string>

namespace undertow::codegen {

struct Isa {
  int lanes = 8;        // elements of a vector, whatever their type: 8 (AVX2) or 16 (AVX-512)
  bool avx512 = false;  // F, BW, CD, DQ and VL
  bool bf16 = false;    // the library may use AVX-512's bfloat16 products, and AMX's; generated code does not
  std::string cpu;      // what LLVM is told: the x86-64 level
  std::string tune;     // whose timings the instruction scheduler assumes; changes no result
};

/// UNDERTOW_ISA = avx2 | avx512 | avx512_bf16 | native (the default: the widest that the machine has). Read once.
/// Throws ValueError for another name and DeviceError for an instruction set that the machine lacks.
const Isa& host_isa();

/// The ISA of a name, whether or not this machine has it (to inspect code for others).
Isa isa_named(const std::string& name);

}  // namespace undertow::codegen
