// SPDX-License-Identifier: Apache-2.0
// What the machine code looks like, for this machine's instruction set and for others: vectors of the full width, no
// contraction, no calls where none are needed.
#include <gtest/gtest.h>

#include "interpreter.h"
#include "undertow/codegen/isa.h"
#include "undertow/codegen/jit.h"
#include "undertow/codegen/schedule.h"

namespace undertow::codegen_test {
namespace {

constexpr DType kF32 = DType::kFloat32;

std::string assembly(const ir::LoopNest& nest, const std::string& isa_name) {
  const auto isa = codegen::isa_named(isa_name);
  const auto schedule = codegen::make_schedule(nest, isa.lanes);
  const codegen::NestFunction function{&nest, &schedule, "f"};
  return codegen::compile_assembly({&function, 1}, isa);
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(Assembly, MulAddIsNotContracted) {
  const auto nest =
      elementwise({1000}, {kF32, kF32, kF32}, kF32, [](auto&, const auto& in) { return in[0] * in[1] + in[2]; });
  for (const auto& [isa, reg] : {std::pair{"avx2", "%ymm"}, std::pair{"avx512", "%zmm"}}) {
    const auto text = assembly(nest, isa);
    EXPECT_EQ(count(text, "vfmadd"), 0) << text;
    EXPECT_GE(count(text, "vmulps"), 1) << text;
    EXPECT_GE(count(text, reg), 3) << text;
  }
}

TEST(Assembly, ReluIsOneMaximum) {
  const auto nest = elementwise({1024}, {kF32}, kF32, [](auto& b, const auto& in) {
    return b.binary(ir::Opcode::kMax, in[0], b.constant(0, kF32));
  });
  for (const char* isa : {"avx2", "avx512"}) {
    const auto text = assembly(nest, isa);
    EXPECT_GE(count(text, "vmaxps"), 1) << text;
    EXPECT_EQ(count(text, "vcmp"), 0) << text;
    EXPECT_EQ(count(text, "vblend"), 0) << text;
  }
}

TEST(Assembly, ExpIsInline) {
  const auto nest =
      elementwise({1024}, {kF32}, kF32, [](auto&, const auto& in) { return ir::fn(ir::Opcode::kExp, in[0]); });
  for (const char* isa : {"avx2", "avx512"}) EXPECT_EQ(count(assembly(nest, isa), "call"), 0);
}

TEST(Assembly, Avx512TailsAreMasked) {
  const auto nest = elementwise({1021}, {kF32, DType::kBFloat16}, DType::kBFloat16,
                                [](auto&, const auto& in) { return in[0] + in[1]; });
  const auto text = assembly(nest, "avx512");
  EXPECT_GE(count(text, "{%k"), 2) << text;
}

TEST(Isa, Names) {
  EXPECT_EQ(codegen::isa_named("avx2").lanes, 8);
  EXPECT_EQ(codegen::isa_named("avx512").lanes, 16);
  EXPECT_ANY_THROW(codegen::isa_named("sse9"));
}

}  // namespace
}  // namespace undertow::codegen_test
