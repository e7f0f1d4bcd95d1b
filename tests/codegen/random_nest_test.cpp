// SPDX-License-Identifier: Apache-2.0
// Random nests: extents, strides, offsets, types, stages and reductions drawn from a seed, against the interpreter.
#include <gtest/gtest.h>

#include <cstdlib>

#include "interpreter.h"
#include "undertow/base/philox.h"

namespace undertow::codegen_test {
namespace {

using ir::Opcode;
using ir::ReduceOp;
using ir::Scalar;
using std::int64_t;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kBFloat16, DType::kFloat16,
                            DType::kInt32,   DType::kInt8,    DType::kFloat64, DType::kBool,     DType::kInt64};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : rng_(seed, 99) {}

  int64_t pick(int64_t n) { return static_cast<int64_t>(rng_.below(static_cast<std::uint64_t>(n))); }
  bool chance(int percent) { return pick(100) < percent; }

  /// Strides of a random permutation of the dims in `uses`, some of them broadcast or reversed; sets the count needed.
  ir::Access access(int buffer, const std::vector<int64_t>& extents, int dims, bool store, int64_t& count) {
    ir::Access a{buffer, 0, std::vector<int64_t>(extents.size(), 0)};
    std::vector<int> order(static_cast<std::size_t>(dims));
    for (int d = 0; d < dims; ++d) order[static_cast<std::size_t>(d)] = d;
    if (chance(30))
      for (std::size_t d = order.size(); d > 1; --d)
        std::swap(order[d - 1], order[static_cast<std::size_t>(pick(static_cast<int64_t>(d)))]);
    int64_t stride = chance(10) ? 2 : 1;
    for (std::size_t k = order.size(); k-- > 0;) {
      const auto d = static_cast<std::size_t>(order[k]);
      if (!store && chance(15)) continue;  // broadcast
      a.strides[d] = stride;
      if (chance(8)) {
        a.offset += stride * (extents[d] - 1);
        a.strides[d] = -stride;
      }
      stride *= extents[d];
      if (chance(5)) stride += 3;
    }
    count = stride * 2 + 8;
    return a;
  }

  Scalar formula(ir::ExprBuilder& b, std::vector<Scalar> in) {
    // Everything as float32; exact on the quarters that the buffers hold as long as it stays small.
    Scalar x = b.cast(in[0], DType::kFloat32);
    for (std::size_t i = 1; i < in.size(); ++i) {
      const Scalar y = b.cast(in[i], DType::kFloat32);
      switch (pick(5)) {
        case 0: x = x + y; break;
        case 1: x = x - y * 0.5; break;
        case 2: x = b.binary(Opcode::kMax, x, y); break;
        case 3: x = ir::select(x < y, y, x); break;
        default: x = b.binary(Opcode::kMin, x, y) + 1.0; break;
      }
    }
    if (chance(20))
      x = x + b.cast(b.binary(Opcode::kRem, b.index(), b.constant_int(7, DType::kInt64)), DType::kFloat32);
    if (chance(20)) x = b.cast(x, DType::kBFloat16);
    return x;
  }

  void run(const std::string& what) {
    ir::LoopNest nest;
    std::vector<Buffer> inputs, outputs;
    const int rank = static_cast<int>(pick(5));
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 33, 40};
    for (int d = 0; d < rank; ++d) nest.extents.push_back(kExtents[pick(rank > 3 ? 7 : 12)]);
    nest.num_outer = static_cast<int>(pick(rank + 1));
    if (chance(40)) nest.num_outer = rank;
    const int stages = 1 + static_cast<int>(pick(3));
    for (int s = 0; s < stages; ++s) {
      ir::Stage stage;
      stage.inner = nest.num_outer < rank && chance(60);
      const int dims = stage.inner ? rank : nest.num_outer;
      std::vector<DType> types;
      const int loads = 1 + static_cast<int>(pick(3));
      for (int l = 0; l < loads; ++l) {
        const DType t = kTypes[pick(10)];
        int64_t count = 0;
        stage.loads.push_back(access(static_cast<int>(inputs.size()), nest.extents, dims, false, count));
        types.push_back(t);
        fill(inputs.emplace_back(t, count), static_cast<std::uint64_t>(pick(1000)));
      }
      for (int l = 0; l < nest.num_locals; ++l)
        if (chance(70)) {
          stage.locals.push_back(l);
          types.push_back(DType::kFloat32);
        }
      const bool reduces = stage.inner && chance(60), local = !stage.inner && chance(30);
      const int results = 1 + static_cast<int>(pick(2));
      stage.expr = expression(types, [&](auto& b, const auto& in) {
        std::vector<Scalar> out;
        for (int r = 0; r < results; ++r) out.push_back(formula(b, in));
        return out;
      });
      for (int r = 0; r < results; ++r) {
        if (reduces) {
          static constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin};
          stage.results.push_back(ir::ReduceResult{kOps[pick(3)], nest.num_locals++});
        } else if (local) {
          stage.results.push_back(ir::LocalResult{nest.num_locals++});
        } else {
          const DType t = chance(60) ? DType::kFloat32 : DType::kBFloat16;
          int64_t count = 0;
          stage.results.push_back(
              ir::StoreResult{access(static_cast<int>(outputs.size()), nest.extents, dims, true, count), t});
          outputs.emplace_back(t, count);
        }
      }
      nest.stages.push_back(std::move(stage));
    }
    nest.num_inputs = static_cast<int>(inputs.size());
    nest.num_outputs = static_cast<int>(outputs.size());
    if (outputs.empty()) return;
    std::vector<Buffer> buffers = inputs;
    for (auto& o : outputs) buffers.push_back(o);
    check(nest, buffers, 0, 0, what);
  }

 private:
  PhiloxStream rng_;
};

TEST(RandomNests, AgreeWithTheInterpreter) {
  const char* env = std::getenv("UNDERTOW_TEST_NESTS");
  const std::uint64_t count = env ? std::strtoull(env, nullptr, 10) : 150;
  for (std::uint64_t seed = 0; seed < count && !testing::Test::HasFailure(); ++seed)
    Generator(seed).run("seed " + std::to_string(seed));
}

}  // namespace
}  // namespace undertow::codegen_test
