// SPDX-License-Identifier: Apache-2.0
// python/src/data_draws.h: what a Python function draws from NumPy's and Python's global generators while it makes a
// row.
//
// A function that draws finds both seeded from the row's RowContext, so that its rows are the same for any number of
// workers, threads or processes, and after resuming; outside worker processes the generators are then as they were
// before. Threads share them, so such a function runs while no other does.
#pragma once

#include <atomic>
#include <mutex>

#include "python/src/common.h"
#include "undertow/data/source.h"

namespace undertow::python {

/// Seeds both generators. Needs the GIL.
void seed_generators(const data::RowContext& context);
/// The states of both, to compare or to give back.
nb::object generator_states();
void set_generator_states(const nb::object& states);
/// Whether this is a worker process, whose generators are nobody else's.
bool in_worker_process();
/// For undertow::data's workers: how Python forks, and how its exceptions travel. Called once.
void set_python_fork_hooks();

/// Runs one function's calls, and learns from the first whether it draws.
class DrawWatch {
 public:
  bool draws() const { return state_ == kDraws; }
  /// To be held around a call, and taken before the GIL.
  std::unique_lock<std::recursive_mutex> lock() const {
    if (state_ == kNone || in_worker_process()) return {};
    return std::unique_lock(mutex());
  }
  template <typename F>
  auto operator()(const data::RowContext& context, F&& call) {
    if (in_worker_process()) {
      seed_generators(context);
      return call();
    }
    if (state_ == kNone) return call();
    const Restore before{generator_states()};
    seed_generators(context);
    const nb::object seeded = state_ == kUnknown ? generator_states() : nb::object();
    auto result = call();
    if (state_ == kUnknown) state_ = seeded.equal(generator_states()) ? kNone : kDraws;
    return result;
  }

 private:
  enum State { kUnknown, kNone, kDraws };
  struct Restore {
    nb::object states;
    ~Restore() { set_generator_states(states); }
  };
  /// Recursive: a function may call an operation that calls another.
  static std::recursive_mutex& mutex() {
    static auto* m = new std::recursive_mutex;
    return *m;
  }
  std::atomic<State> state_{kUnknown};
};

}  // namespace undertow::python
