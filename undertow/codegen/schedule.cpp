// SPDX-License-Identifier: Apache-2.0
#include "undertow/codegen/schedule.h"

#include <algorithm>
#include <cmath>

#include "undertow/base/check.h"

namespace undertow::codegen {
namespace {

using ir::Opcode;
using std::int64_t;

// Points of work in a unit: enough to hide a call, few enough that 64 units share a large nest evenly.
constexpr int64_t kMinUnitPoints = 2048, kMaxUnitPoints = 32768, kWantedUnits = 64;
// Additions to one float32 accumulator before it goes through float64: 4096 elements in 4 vectors of 8.
constexpr int64_t kChunkLength = 128;
constexpr int64_t kLineElements = 16;  // float32 elements of a cache line

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool reduces_floats(const ir::Stage& stage) {
  for (std::size_t r = 0; r < stage.results.size(); ++r)
    if (const auto* reduce = std::get_if<ir::ReduceResult>(&stage.results[r])) {
      const auto& inst = stage.expr.insts[static_cast<std::size_t>(stage.expr.results[r])];
      if ((reduce->op == ir::ReduceOp::kSum || reduce->op == ir::ReduceOp::kProd) && is_floating(inst.dtype))
        return true;
    }
  return false;
}

/// Cycles a vector of the instructions that depend on the point; the others are done once.
double stage_weight(const ir::Stage& stage) {
  const auto moves = [&](const ir::ExprInst& inst) {
    if (inst.op == Opcode::kIndex) return true;
    if (inst.op != Opcode::kInput) return false;
    const auto in = static_cast<std::size_t>(inst.imm);
    if (in >= stage.loads.size()) return true;
    for (const auto stride : stage.loads[in].strides)
      if (stride != 0) return true;
    return false;
  };
  double w = 0;
  std::vector<bool> varies;
  for (const auto& inst : stage.expr.insts) {
    bool v = moves(inst);
    for (const int o : {inst.a, inst.b, inst.c}) v |= o >= 0 && varies[static_cast<std::size_t>(o)];
    varies.push_back(v);
    if (v) w += weight_of(inst);
  }
  return w;
}

class Scheduler {
 public:
  Scheduler(const ir::LoopNest& nest, int lanes) : nest_(nest), machine_lanes_(lanes) {}

  Schedule run() {
    copy_accesses();
    drop_unit_dims();
    merge_dims();
    choose_vector_dim();
    for (std::size_t i = 0; i < nest_.stages.size(); ++i) schedule_stage(i);
    choose_tile();
    choose_rows();
    choose_units();
    s_.cost = estimate();
    s_.in_place_ok = in_place_ok();
    return std::move(s_);
  }

 private:
  template <typename F>
  void each_access(F&& f) {
    for (std::size_t i = 0; i < s_.stages.size(); ++i) {
      auto& st = s_.stages[i];
      for (auto& a : st.loads) f(a);
      for (auto& a : st.stores) f(a);
      f(st.index);
    }
  }

  void copy_accesses() {
    const auto rank = nest_.extents.size();
    s_.extents = nest_.extents;
    s_.num_outer = nest_.num_outer;
    for (const auto& stage : nest_.stages) {
      StageSchedule st;
      const auto copy = [&](const ir::Access& a, DType dtype) {
        ScheduledAccess c{a.buffer, dtype, a.offset, a.strides};
        c.strides.resize(rank, 0);
        return c;
      };
      for (std::size_t i = 0; i < stage.loads.size(); ++i)
        st.loads.push_back(copy(stage.loads[i], stage.expr.inputs[i]));
      for (const auto& r : stage.results) {
        const auto* store = std::get_if<ir::StoreResult>(&r);
        st.stores.push_back(store ? copy(store->access, store->dtype) : copy({}, DType::kFloat32));
      }
      st.index.strides.resize(rank, 0);
      int64_t stride = 1;
      for (std::size_t d = rank; d-- > 0; stride *= nest_.extents[d]) st.index.strides[d] = stride;
      s_.stages.push_back(std::move(st));
      if (!stage.inner) {
        // An outer stage runs at the first inner point.
        auto& back = s_.stages.back();
        const auto clear = [&](ScheduledAccess& a) {
          for (auto d = static_cast<std::size_t>(nest_.num_outer); d < rank; ++d) a.strides[d] = 0;
        };
        for (auto& a : back.loads) clear(a);
        for (auto& a : back.stores) clear(a);
        clear(back.index);
      }
    }
  }

  void erase_dim(int d) {
    s_.extents.erase(s_.extents.begin() + d);
    each_access([&](ScheduledAccess& a) { a.strides.erase(a.strides.begin() + d); });
    if (d < s_.num_outer) --s_.num_outer;
  }

  void drop_unit_dims() {
    for (int d = static_cast<int>(s_.extents.size()) - 1; d >= 0; --d)
      if (s_.extent(d) == 1) erase_dim(d);
  }

  void merge_dims() {
    for (int d = static_cast<int>(s_.extents.size()) - 2; d >= 0; --d) {
      if (d + 1 == s_.num_outer) continue;
      const auto i = static_cast<std::size_t>(d);
      bool fits = true;
      each_access([&](const ScheduledAccess& a) { fits &= a.strides[i] == a.strides[i + 1] * s_.extents[i + 1]; });
      if (!fits) continue;
      s_.extents[i + 1] *= s_.extents[i];
      erase_dim(d);
    }
  }

  int64_t points(int from, int to) const {
    int64_t n = 1;
    for (int d = from; d < to; ++d) n *= s_.extent(d);
    return n;
  }
  int64_t outer_points() const { return points(0, s_.num_outer); }
  int64_t inner_points() const { return points(s_.num_outer, static_cast<int>(s_.extents.size())); }

  /// Cycles of the nest with `dim` as the lanes, roughly.
  double cost_with(int dim) const {
    const auto d = static_cast<std::size_t>(dim);
    const bool outer = dim < s_.num_outer;
    const double lanes = machine_lanes_;
    const double vectors =
        static_cast<double>(ceil_div(s_.extent(dim), machine_lanes_)) / static_cast<double>(s_.extent(dim));
    double total = 0;
    for (std::size_t i = 0; i < nest_.stages.size(); ++i) {
      const auto& stage = nest_.stages[i];
      const auto& st = s_.stages[i];
      const bool scalar = !outer && !stage.inner;
      double c = stage_weight(stage);
      for (const auto& a : st.loads) {
        const int64_t stride = std::abs(a.strides[d]);
        c += scalar || stride == 1 ? 1 : stride == 0 ? 0.3 : lanes;
      }
      for (std::size_t r = 0; r < st.stores.size(); ++r) {
        const int64_t stride = st.stores[r].strides[d];
        if (std::holds_alternative<ir::StoreResult>(stage.results[r])) c += scalar || stride == 1 ? 1.5 : 2 * lanes;
      }
      double n = static_cast<double>(outer_points());
      if (stage.inner) n *= static_cast<double>(inner_points());
      total += c * n * (scalar ? 1.0 : vectors);
      if (stage.inner && !outer)  // across the lanes, once per outer point
        for (const auto& r : stage.results)
          if (std::holds_alternative<ir::ReduceResult>(r))
            total += 3 * std::log2(lanes) * static_cast<double>(outer_points());
    }
    return total;
  }

  void choose_vector_dim() {
    double best = 0;
    for (int d = static_cast<int>(s_.extents.size()) - 1; d >= 0; --d) {
      const double c = cost_with(d);
      if (s_.vec_dim >= 0 && c >= best) continue;
      best = c;
      s_.vec_dim = d;
    }
    s_.vec_outer = s_.vec_dim >= 0 && s_.vec_dim < s_.num_outer;
    s_.lanes = s_.vec_dim >= 0 ? machine_lanes_ : 1;
  }

  void schedule_stage(std::size_t i) {
    const auto& stage = nest_.stages[i];
    auto& st = s_.stages[i];
    if (!stage.inner) return;
    for (int d = s_.num_outer; d < static_cast<int>(s_.extents.size()); ++d)
      if (d != s_.vec_dim) st.loops.push_back(d);
    const bool vec_inner = s_.vec_dim >= s_.num_outer;
    if (vec_inner) st.loops.push_back(s_.vec_dim);
    if (st.loops.empty()) return;

    const double weight = stage_weight(stage);
    const int64_t n = ceil_div(s_.extent(st.loops.back()), vec_inner ? s_.lanes : 1);
    st.unroll = static_cast<int>(std::min<int64_t>(weight <= 8 ? 4 : weight <= 14 ? 2 : 1, n));

    if (!reduces_floats(stage)) return;
    // The deepest loop whose iterations together exceed a chunk is cut in blocks.
    const int64_t limit = kChunkLength * st.unroll * (vec_inner ? s_.lanes : 1);
    int64_t inside = 1;
    for (int l = static_cast<int>(st.loops.size()) - 1; l >= 0; --l) {
      const int64_t extent = s_.extent(st.loops[static_cast<std::size_t>(l)]);
      if (inside * extent > limit) {
        st.chunk_loop = l;
        st.chunk_block = std::max<int64_t>(1, limit / inside);
        break;
      }
      inside *= extent;
    }
  }

  void choose_tile() {
    if (!s_.vec_outer) return;
    const int64_t n = ceil_div(s_.extent(s_.vec_dim), s_.lanes);
    double weight = 0;
    int reduces = 0;
    bool inner = false, unit_stride = false;
    for (std::size_t i = 0; i < nest_.stages.size(); ++i) {
      const auto& stage = nest_.stages[i];
      if (stage.inner)
        for (const auto& a : s_.stages[i].loads) unit_stride |= a.strides[static_cast<std::size_t>(s_.vec_dim)] == 1;
      weight += stage_weight(stage);
      inner |= stage.inner;
      for (const auto& r : stage.results) reduces += std::holds_alternative<ir::ReduceResult>(r);
    }
    int64_t tile = weight <= 8 ? 2 : 1;
    if (inner) {
      // Whole cache lines of the rows that are walked, several where the extent leaves units to share.
      const int64_t line = std::max<int64_t>(1, kLineElements / s_.lanes), extent = s_.extent(s_.vec_dim);
      tile = weight <= 16 ? line * (extent >= 256 ? 4 : extent >= 64 ? 2 : 1) : line;
      while (tile > 1 && tile * reduces > (s_.lanes >= 16 ? 16 : 8)) tile /= 2;
      if (weight > 100 || !unit_stride) tile = 1;
    }
    s_.tile = static_cast<int>(std::min(tile, n));
    for (auto& st : s_.stages) {
      // Several vectors are several accumulators already.
      const int unroll = std::max(1, std::min(st.unroll, 4 / s_.tile));
      if (st.chunk_loop >= 0 && st.chunk_loop + 1 == static_cast<int>(st.loops.size()))
        st.chunk_block = kChunkLength * unroll;  // a block ends where the copies of the innermost loop do
      st.unroll = unroll;
    }
  }

  /// A light elementwise nest with a load that runs along another dim than the lanes: blocks of both dims at once.
  void choose_rows() {
    if (!s_.vec_outer || s_.extent(s_.vec_dim) < s_.lanes) return;
    double weight = 0;
    for (const auto& stage : nest_.stages) {
      if (stage.inner) return;
      weight += stage_weight(stage);
    }
    if (weight > 12) return;
    for (const auto& st : s_.stages)
      for (const auto& a : st.loads) {
        if (std::abs(a.strides[static_cast<std::size_t>(s_.vec_dim)]) < 2) continue;
        for (int d = 0; d < s_.num_outer; ++d)
          if (d != s_.vec_dim && a.strides[static_cast<std::size_t>(d)] == 1 && s_.extent(d) >= s_.lanes) {
            s_.row_dim = d;
            s_.rows = s_.lanes;
            s_.tile = 1;
            return;
          }
      }
  }

  void choose_units() {
    std::vector<int> order;  // outer loops, innermost last
    for (int d = 0; d < s_.num_outer; ++d)
      if (d != s_.vec_dim && d != s_.row_dim) order.push_back(d);
    if (s_.row_dim >= 0) order.push_back(s_.row_dim);
    if (s_.vec_outer) order.push_back(s_.vec_dim);
    int64_t inner = 0;
    for (const auto& stage : nest_.stages) inner += stage.inner ? inner_points() : 0;
    inner = std::max<int64_t>(inner, 1);
    const int64_t total = outer_points() * inner;
    const int64_t wanted = std::clamp(ceil_div(total, kWantedUnits), kMinUnitPoints, kMaxUnitPoints);
    int64_t inside = inner;
    while (!order.empty()) {
      const int d = order.back();
      const int64_t step = s_.step_of(d);
      const int64_t block = ceil_div(std::max<int64_t>(1, wanted / inside), step) * step;
      order.pop_back();
      s_.unit_loops.insert(s_.unit_loops.begin(), d);
      if (block < s_.extent(d)) {
        s_.split_dim = d;
        s_.split_block = block;
        s_.units *= ceil_div(s_.extent(d), block);
        break;
      }
      inside *= s_.extent(d);
    }
    s_.unit_dims = order;
    for (const int d : order) s_.units *= s_.extent(d);
  }

  double estimate() const {
    constexpr double kVectorOpsPerNs = 5;
    double operations = 0, bytes = 0;
    for (std::size_t i = 0; i < nest_.stages.size(); ++i) {
      const auto& st = s_.stages[i];
      double n = static_cast<double>(outer_points());
      if (nest_.stages[i].inner) n *= static_cast<double>(inner_points());
      const double lanes = s_.vec_outer || nest_.stages[i].inner ? s_.lanes : 1;
      operations += n * stage_weight(nest_.stages[i]) / lanes;
      for (const auto& a : st.loads)
        if (s_.vec_dim < 0 || a.strides[static_cast<std::size_t>(s_.vec_dim)] != 0)
          bytes += n * static_cast<double>(size_of(a.dtype));
      for (std::size_t r = 0; r < st.stores.size(); ++r)
        if (std::holds_alternative<ir::StoreResult>(nest_.stages[i].results[r]))
          bytes += n * static_cast<double>(size_of(st.stores[r].dtype));
    }
    const double bytes_per_ns = bytes < 64e3 ? 100 : bytes < 8e6 ? 40 : 15;  // L1, L2 and L3, memory
    return 10 + 3 * static_cast<double>(s_.units) + std::max(bytes / bytes_per_ns, operations / kVectorOpsPerNs);
  }

  /// Elementwise, all loads before the first store of a point.
  bool in_place_ok() const {
    if (s_.num_outer != static_cast<int>(s_.extents.size())) return false;
    bool stored = false;
    for (const auto& stage : nest_.stages) {
      if (stage.inner || (stored && !stage.loads.empty())) return false;
      for (const auto& r : stage.results) stored |= std::holds_alternative<ir::StoreResult>(r);
    }
    return true;
  }

  const ir::LoopNest& nest_;
  int machine_lanes_;
  Schedule s_;
};

}  // namespace

double weight_of(const ir::ExprInst& inst) {
  const double wide = size_of(inst.dtype) == 8 ? 2 : 1;
  const bool f64 = inst.dtype == DType::kFloat64, integer = is_integral(inst.dtype);
  switch (inst.op) {
    case Opcode::kInput:
    case Opcode::kConst: return 0;
    case Opcode::kDiv:
    case Opcode::kSqrt: return integer ? 60 : 5 * wide;
    case Opcode::kRem: return integer ? 60 : 100;
    case Opcode::kMin:
    case Opcode::kMax: return is_floating(inst.dtype) ? 2 * wide : wide;
    case Opcode::kExp:
    case Opcode::kExpm1: return f64 ? 100 : 16;
    case Opcode::kLog:
    case Opcode::kLog1p: return f64 ? 100 : 24;
    case Opcode::kSin:
    case Opcode::kCos:
    case Opcode::kTanh: return f64 ? 150 : 25;
    case Opcode::kErf: return f64 ? 150 : 40;
    case Opcode::kPow: return f64 || integer ? 300 : 100;
    case Opcode::kAtan2: return f64 ? 300 : 40;
    case Opcode::kRandom: return 70;
    case Opcode::kCast: return is_half(inst.dtype) ? 5 : wide;
    default: return wide;
  }
}

Schedule make_schedule(const ir::LoopNest& nest, int lanes) {
  for (const auto e : nest.extents) UNDERTOW_ASSERT(e >= 1);
  UNDERTOW_ASSERT(nest.num_outer >= 0 && nest.num_outer <= nest.rank());
  return Scheduler(nest, lanes).run();
}

}  // namespace undertow::codegen
