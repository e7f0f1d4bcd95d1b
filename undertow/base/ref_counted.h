// SPDX-License-Identifier: Apache-2.0
// base/ref_counted.h: an intrusive count that a host language can take over.
//
// Tensors and cells are one object in C++ and in Python. While only C++ knows the object, the count is a number in the
// object; once Python has wrapped it, the word holds the Python object and every reference is a Python reference. Same
// idea as nanobind's intrusive counter; the core stays free of Python because the two hooks are function pointers.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace undertow {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) : RefCounted() {}
  RefCounted& operator=(const RefCounted&) { return *this; }
  virtual ~RefCounted() = default;

  void inc_ref() const noexcept {
    std::uintptr_t v = word_.load(std::memory_order_relaxed);
    while (v & 1) {
      if (word_.compare_exchange_weak(v, v + 2, std::memory_order_relaxed)) return;
    }
    inc_py_(reinterpret_cast<void*>(v));
  }
  void dec_ref() const noexcept {
    std::uintptr_t v = word_.load(std::memory_order_relaxed);
    while (v & 1) {
      if (v == 1 + 2) {
        // Last C++ reference: nobody else can take one any more.
        std::atomic_thread_fence(std::memory_order_acquire);
        delete this;
        return;
      }
      if (word_.compare_exchange_weak(v, v - 2, std::memory_order_acq_rel)) return;
    }
    dec_py_(reinterpret_cast<void*>(v));
  }
  /// The Python object that owns this one, or null.
  void* self_py() const noexcept {
    const std::uintptr_t v = word_.load(std::memory_order_acquire);
    return v & 1 ? nullptr : reinterpret_cast<void*>(v);
  }
  /// Python takes over: existing C++ references become references to `object`.
  void set_self_py(void* object) noexcept {
    const std::uintptr_t v = word_.load(std::memory_order_relaxed);
    for (std::uintptr_t n = v >> 1; n > 0; --n) inc_py_(object);
    word_.store(reinterpret_cast<std::uintptr_t>(object), std::memory_order_release);
  }
  static void set_hooks(void (*inc)(void*) noexcept, void (*dec)(void*) noexcept) noexcept {
    inc_py_ = inc;
    dec_py_ = dec;
  }

 private:
  mutable std::atomic<std::uintptr_t> word_{1};  // odd: (count << 1) | 1; even: the owning Python object
  static inline void (*inc_py_)(void*) noexcept = nullptr;
  static inline void (*dec_py_)(void*) noexcept = nullptr;
};

/// Shared reference to a RefCounted object.
template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  Ref(T* p) : p_(p) {
    if (p_) p_->inc_ref();
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <typename U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& o) : Ref(o.get()) {}
  ~Ref() {
    if (p_) p_->dec_ref();
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace undertow
