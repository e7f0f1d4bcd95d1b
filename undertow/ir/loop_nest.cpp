// SPDX-License-Identifier: Apache-2.0
#include "undertow/ir/loop_nest.h"

namespace undertow::ir {
namespace {
void hash_access(Hasher& h, const Access& a) { h.add(a.buffer).add(a.offset).add_range(a.strides); }
}  // namespace

std::int64_t LoopNest::outer_points() const {
  std::int64_t n = 1;
  for (int d = 0; d < num_outer; ++d) n *= extents[static_cast<std::size_t>(d)];
  return n;
}

std::int64_t LoopNest::inner_points() const {
  std::int64_t n = 1;
  for (int d = num_outer; d < rank(); ++d) n *= extents[static_cast<std::size_t>(d)];
  return n;
}

Digest LoopNest::hash() const {
  Hasher h;
  h.add_range(extents).add(num_outer).add(num_locals).add(num_inputs).add(num_outputs).add(stages.size());
  for (const auto& s : stages) {
    h.add(s.inner).add(s.loads.size());
    for (const auto& a : s.loads) hash_access(h, a);
    h.add_range(s.locals);
    s.expr.hash(h);
    for (const auto& r : s.results) {
      h.add(r.index());
      if (const auto* store = std::get_if<StoreResult>(&r)) {
        hash_access(h, store->access);
        h.add(store->dtype);
      } else if (const auto* reduce = std::get_if<ReduceResult>(&r)) {
        h.add(reduce->op).add(reduce->local);
      } else {
        h.add(std::get<LocalResult>(r).local);
      }
    }
  }
  return h.digest();
}

}  // namespace undertow::ir
