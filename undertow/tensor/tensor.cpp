// SPDX-License-Identifier: Apache-2.0
#include "undertow/tensor/tensor.h"

#include <cstring>

#include "undertow/base/check.h"
#include "undertow/tensor/convert.h"

namespace undertow {
namespace {

void copy_strided(std::byte* dst, const std::byte* src, const Shape& shape, std::span<const std::int64_t> strides,
                  int dim, std::size_t element) {
  if (dim == shape.rank()) {
    std::memcpy(dst, src, element);
    return;
  }
  std::size_t inner = element;
  for (int i = dim + 1; i < shape.rank(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  for (std::int64_t i = 0; i < shape[dim]; ++i)
    copy_strided(dst + static_cast<std::size_t>(i) * inner, src + i * strides[dim], shape, strides, dim + 1, element);
}

}  // namespace

Tensor::Tensor(DType dtype, const Shape& shape) : impl_(make_ref<TensorImpl>()) {
  impl_->shape = shape;
  impl_->dtype = dtype;
  impl_->storage = make_ref<Storage>(static_cast<std::size_t>(shape.numel()) * size_of(dtype));
}

void Tensor::fill_from(const void* data, std::size_t count, std::size_t element) {
  UNDERTOW_CHECK(static_cast<std::int64_t>(count) == size(), ShapeError, "{} values do not fill shape {}", count,
                 shape().str());
  if (count) std::memcpy(impl_->bytes(), data, count * element);
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor t(dtype, shape);
  if (t.nbytes()) std::memset(t.data(), 0, t.nbytes());
  return t;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  Tensor t(dtype, shape);
  dispatch(dtype, [&](auto tag) {
    using T = decltype(tag);
    const T v = convert<double, T>(value);
    T* p = static_cast<T*>(t.data());
    for (std::int64_t i = 0, n = t.size(); i < n; ++i) p[i] = v;
  });
  return t;
}

Tensor Tensor::symbolic(DType dtype, const Shape& shape, Symbol symbol) {
  auto impl = make_ref<TensorImpl>();
  impl->shape = shape;
  impl->dtype = dtype;
  impl->symbol = symbol;
  return Tensor(std::move(impl));
}

Tensor Tensor::from_strided(const void* data, DType dtype, const Shape& shape,
                            std::span<const std::int64_t> byte_strides) {
  Tensor t(dtype, shape);
  const auto dense = contiguous_strides(shape);
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  bool is_dense = true;
  for (int i = 0; i < shape.rank(); ++i) is_dense &= shape[i] == 1 || byte_strides[i] == dense[i] * element;
  if (t.nbytes() == 0) return t;
  if (is_dense) std::memcpy(t.data(), data, t.nbytes());
  else
    copy_strided(static_cast<std::byte*>(t.data()), static_cast<const std::byte*>(data), shape, byte_strides, 0,
                 static_cast<std::size_t>(element));
  return t;
}

void* Tensor::data() const {
  UNDERTOW_CHECK(defined(), ValueError, "the tensor is empty (it was default-constructed)");
  UNDERTOW_CHECK(is_concrete(), TraceError,
                 "a traced tensor of shape {} has no value while `construct` is being compiled. Its value cannot be "
                 "read there (asnumpy, item, bool, float): use ops on the tensor, or PYNATIVE_MODE to run eagerly",
                 shape().str());
  return impl_->bytes();
}

void Tensor::check_dtype(DType d) const {
  UNDERTOW_CHECK(d == dtype(), TypeError, "the tensor holds {}, asked for {}", name_of(dtype()), name_of(d));
}

double Tensor::item_as_double() const {
  UNDERTOW_CHECK(size() == 1, ValueError, "item() needs exactly one element, the tensor has shape {}", shape().str());
  const void* p = data();
  return dispatch(dtype(), [&](auto tag) {
    using T = decltype(tag);
    return convert<T, double>(*static_cast<const T*>(p));
  });
}

std::int64_t Tensor::item_as_int() const {
  UNDERTOW_CHECK(size() == 1, ValueError, "item() needs exactly one element, the tensor has shape {}", shape().str());
  const void* p = data();
  return dispatch(dtype(), [&](auto tag) {
    using T = decltype(tag);
    return convert<T, std::int64_t>(*static_cast<const T*>(p));
  });
}

Tensor Tensor::clone() const {
  Tensor t(dtype(), shape());
  if (nbytes()) std::memcpy(t.data(), data(), nbytes());
  return t;
}

Tensor Tensor::to(DType target) const {
  Tensor t(target, shape());
  const void* in = data();
  void* out = t.data();
  const std::int64_t n = size();
  dispatch(dtype(), [&](auto from) {
    dispatch(target, [&](auto to) {
      using F = decltype(from);
      using T = decltype(to);
      for (std::int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = convert<F, T>(static_cast<const F*>(in)[i]);
    });
  });
  return t;
}

void Tensor::assign(const Tensor& value) const {
  UNDERTOW_CHECK(value.shape() == shape() && value.dtype() == dtype(), ShapeError,
                 "cannot assign {} of shape {} to {} of shape {}", name_of(value.dtype()), value.shape().str(),
                 name_of(dtype()), shape().str());
  if (nbytes()) std::memmove(data(), value.data(), nbytes());
}

Tensor Tensor::view(const Shape& s) const {
  UNDERTOW_CHECK(s.numel() == size(), ShapeError, "cannot view shape {} as {}", shape().str(), s.str());
  auto impl = make_ref<TensorImpl>();
  impl->shape = s;
  impl->dtype = dtype();
  impl->storage = impl_->storage;
  impl->offset = impl_->offset;
  return Tensor(std::move(impl));
}

Parameter::Parameter(const Tensor& value, std::string name, bool requires_grad) : Tensor(value.clone()) {
  impl()->parameter = std::make_unique<ParameterInfo>();
  impl()->parameter->name = std::move(name);
  impl()->parameter->requires_grad = requires_grad;
}

Parameter Parameter::of(const Tensor& tensor) {
  UNDERTOW_CHECK(tensor.defined() && tensor.is_parameter(), TypeError, "expected a Parameter, got a plain Tensor");
  Parameter p;
  static_cast<Tensor&>(p) = tensor;
  return p;
}

}  // namespace undertow
