// SPDX-License-Identifier: Apache-2.0
// tensor/tensor.h: Tensor and Parameter, handles with reference semantics.
//
// A Tensor is concrete (dense row-major storage on the host), symbolic (a value of a graph being traced), or both
// (eager execution that records). A Parameter is a Tensor with a name whose storage keeps its address for its whole
// life, so that compiled programs can hold it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "undertow/base/dtype.h"
#include "undertow/base/error.h"
#include "undertow/base/memory.h"
#include "undertow/base/ref_counted.h"
#include "undertow/base/shape.h"

namespace undertow {

/// A block of memory: owned (from the pool), or foreign with a deleter.
class Storage : public RefCounted, public Pooled {
 public:
  explicit Storage(std::size_t bytes) : data_(allocate(bytes)), bytes_(bytes) {}
  /// Foreign memory; `release(context)` is called once when the last reference is gone.
  Storage(void* data, std::size_t bytes, void (*release)(void*), void* context)
      : data_(data), bytes_(bytes), release_(release), context_(context) {}
  ~Storage() override {
    if (release_) release_(context_);
    else deallocate(data_, bytes_);
  }
  Storage(const Storage&) = delete;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_;
  std::size_t bytes_;
  void (*release_)(void*) = nullptr;
  void* context_ = nullptr;
};

/// What makes a tensor a Parameter.
struct ParameterInfo : Pooled {
  std::string name;
  bool requires_grad = true;
};

/// A value of a graph: the graph's unique number and the value's index in it. Graph numbers are never reused.
struct Symbol {
  std::uint64_t graph = 0;  // 0: none
  std::uint32_t value = 0;
};

class TensorImpl : public RefCounted, public Pooled {
 public:
  Shape shape;
  DType dtype = DType::kFloat32;
  Ref<Storage> storage;    // null while only symbolic
  std::size_t offset = 0;  // bytes into storage
  Symbol symbol;
  std::unique_ptr<ParameterInfo> parameter;  // null for a plain tensor

  std::byte* bytes() const { return static_cast<std::byte*>(storage->data()) + offset; }
};

class Tensor {
 public:
  /// No tensor at all; `defined()` is false.
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  /// Uninitialised memory.
  Tensor(DType dtype, const Shape& shape);
  /// One dimension, dtype of T: Tensor({1.f, 2.f}).
  template <typename T>
  Tensor(std::initializer_list<T> values) : Tensor(std::span<const T>(values.begin(), values.size())) {}
  template <typename T>
  explicit Tensor(std::span<const T> values, const Shape& shape) : Tensor(dtype_of<T>::v, shape) {
    fill_from(values.data(), values.size(), sizeof(T));
  }
  template <typename T>
  explicit Tensor(std::span<const T> values) : Tensor(values, Shape{static_cast<std::int64_t>(values.size())}) {}
  template <typename T>
  explicit Tensor(const std::vector<T>& values) : Tensor(std::span<const T>(values)) {}
  template <typename T>
  Tensor(const std::vector<T>& values, const Shape& shape) : Tensor(std::span<const T>(values), shape) {}

  /// Rank 0.
  template <typename T>
  static Tensor scalar(T value) {
    return Tensor(std::span<const T>(&value, 1), Shape{});
  }
  static Tensor zeros(const Shape& shape, DType dtype = DType::kFloat32);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::kFloat32);
  /// A value of graph `symbol.graph`; has no memory.
  static Tensor symbolic(DType dtype, const Shape& shape, Symbol symbol);
  /// Copies memory with any strides (in bytes, possibly negative or zero) into a dense tensor.
  static Tensor from_strided(const void* data, DType dtype, const Shape& shape,
                             std::span<const std::int64_t> byte_strides);

  bool defined() const { return static_cast<bool>(impl_); }
  const Ref<TensorImpl>& impl() const { return impl_; }
  const Shape& shape() const { return impl_->shape; }
  std::int64_t shape(int i) const { return impl_->shape[i < 0 ? i + impl_->shape.rank() : i]; }
  int ndim() const { return impl_->shape.rank(); }
  DType dtype() const { return impl_->dtype; }
  std::int64_t size() const { return impl_->shape.numel(); }
  std::size_t nbytes() const { return static_cast<std::size_t>(size()) * size_of(dtype()); }

  /// Has memory. A tensor that is only symbolic has none, and reading it raises TraceError.
  bool is_concrete() const { return static_cast<bool>(impl_->storage); }
  bool is_symbolic() const { return impl_->symbol.graph != 0; }
  bool is_parameter() const { return static_cast<bool>(impl_->parameter); }

  void* data() const;
  template <typename T>
  T* data_as() const {
    check_dtype(dtype_of<T>::v);
    return static_cast<T*>(data());
  }
  /// The only element, converted to T. Throws ValueError unless there is exactly one.
  template <typename T>
  T item() const {
    return static_cast<T>(item_as_double());
  }
  double item_as_double() const;
  std::int64_t item_as_int() const;

  /// A copy with memory of its own.
  Tensor clone() const;
  /// A converted copy of a concrete tensor (C++ conversion rules; to bool: non-zero). `ops::cast` is the traced form.
  Tensor to(DType dtype) const;
  /// Overwrites the elements; shapes and dtypes must be equal. Keeps the address.
  void assign(const Tensor& value) const;
  /// Same memory, other shape. -1 is not accepted here.
  Tensor view(const Shape& shape) const;

 private:
  void fill_from(const void* data, std::size_t count, std::size_t element);
  void check_dtype(DType dtype) const;

  Ref<TensorImpl> impl_;
};

class Parameter : public Tensor {
 public:
  Parameter() = default;
  /// Copies `value`.
  explicit Parameter(const Tensor& value, std::string name = "", bool requires_grad = true);
  /// The given tensor must be a parameter.
  static Parameter of(const Tensor& tensor);

  const std::string& name() const { return impl()->parameter->name; }
  void set_name(std::string name) const { impl()->parameter->name = std::move(name); }
  bool requires_grad() const { return impl()->parameter->requires_grad; }
  void set_requires_grad(bool value) const { impl()->parameter->requires_grad = value; }
};

}  // namespace undertow
