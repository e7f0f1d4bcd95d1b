// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/counters.h"

#include <cstdlib>
#include <new>

#include "undertow/runtime/stats.h"

namespace undertow::runtime {
namespace {
thread_local std::int64_t allocations_here = 0;
}

std::int64_t thread_allocations() { return allocations_here; }

Counters& counters() {
  static auto* c = new Counters;
  return *c;
}

Stats stats() {
  const Counters& c = counters();
  return {c.commands.load(),     c.steps.load(),      c.compiles.load(),     c.allocations.load(),
          c.program_hits.load(), c.edge_casts.load(), c.inside_casts.load(), c.cast_bytes.load()};
}

void reset_stats() {
  Counters& c = counters();
  for (auto* n : {&c.commands, &c.steps, &c.compiles, &c.allocations, &c.program_hits, &c.edge_casts, &c.inside_casts,
                  &c.cast_bytes})
    n->store(0);
}

namespace detail {
void count_allocation() { ++allocations_here; }
}  // namespace detail

}  // namespace undertow::runtime

// Undertow's own `new`, seen inside this library only (cmake/exports.map): it counts, so that "no allocation in the
// loop" is a number and not a promise. Sanitizers bring their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t bytes) {
  undertow::runtime::detail::count_allocation();
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif
