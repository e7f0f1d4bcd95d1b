// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/ref_counted.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace undertow {
namespace {

struct Counted : RefCounted {
  explicit Counted(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~Counted() override { --alive_; }
  std::atomic<int>& alive_;
};
struct Derived : Counted {
  using Counted::Counted;
};

TEST(RefCounted, LastReferenceDeletes) {
  std::atomic<int> alive{0};
  {
    Ref<Derived> a = make_ref<Derived>(alive);
    Ref<Counted> b = a, c = b;
    Ref<Counted> d = std::move(b);
    EXPECT_FALSE(b);
    EXPECT_TRUE(d == c);
    a = nullptr;
    c = nullptr;
    EXPECT_EQ(alive.load(), 1);
    d = d;
    EXPECT_EQ(alive.load(), 1);
  }
  EXPECT_EQ(alive.load(), 0);
}

TEST(RefCounted, Threads) {
  std::atomic<int> alive{0};
  {
    Ref<Counted> shared = make_ref<Counted>(alive);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([copy = shared] {
        for (int i = 0; i < 20000; ++i) {
          Ref<Counted> a = copy, b = a;
          a = nullptr;
        }
      });
    shared = nullptr;
    for (auto& t : threads) t.join();
  }
  EXPECT_EQ(alive.load(), 0);
}

// Stands for a host language: references are counted in its object from the hand-over on.
struct HostObject {
  int count = 1;
  const RefCounted* cpp = nullptr;
};
void host_inc(void* p) noexcept { ++static_cast<HostObject*>(p)->count; }
void host_dec(void* p) noexcept {
  auto* h = static_cast<HostObject*>(p);
  if (--h->count == 0) delete h->cpp;
}

TEST(RefCounted, HostTakesOver) {
  RefCounted::set_hooks(host_inc, host_dec);
  std::atomic<int> alive{0};
  HostObject host;
  {
    Ref<Counted> a = make_ref<Counted>(alive), b = a;
    EXPECT_EQ(a->self_py(), nullptr);
    host.cpp = a.get();
    a->set_self_py(&host);
    EXPECT_EQ(a->self_py(), &host);
    EXPECT_EQ(host.count, 3);  // its own and two from C++
    Ref<Counted> c = b;
    EXPECT_EQ(host.count, 4);
  }
  EXPECT_EQ(host.count, 1);
  EXPECT_EQ(alive.load(), 1);
  host_dec(&host);
  EXPECT_EQ(alive.load(), 0);
}

}  // namespace
}  // namespace undertow
