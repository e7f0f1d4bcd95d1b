// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "undertow/ops/reference/detail.h"
#include "undertow/ops/reference/reference.h"

namespace undertow::ops::reference {
namespace {

/// y[i] = x[base + sum of strides * i] over the result's shape.
void copy_from(const ir::HostArray& x, const ir::HostArray& y, std::span<const std::int64_t> strides,
               std::int64_t base = 0) {
  dispatch_bits(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    walk(y.shape, strides, base, [&](std::int64_t i, std::int64_t at) { y.as<T>()[i] = x.as<T>()[at]; });
  });
}

template <typename T>
T from_attr(const ir::AttrValue& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(v)>>) return narrow<T>(v);
        else return T{};
      },
      value);
}

}  // namespace

void reshape(Arrays in, Arrays out, const ir::Attrs&, ir::StepError*) {
  const std::size_t bytes = static_cast<std::size_t>(out[0].shape.numel()) * size_of(out[0].dtype);
  if (bytes && in[0].data != out[0].data) std::memcpy(out[0].data, in[0].data, bytes);
}

void transpose(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  const auto dense = contiguous_strides(in[0].shape);
  std::vector<std::int64_t> strides;
  for (const auto d : attrs.ints("perm")) strides.push_back(dense[d]);
  copy_from(in[0], out[0], strides);
}

void broadcast_to(Arrays in, Arrays out, const ir::Attrs&, ir::StepError*) {
  const Shape &x = in[0].shape, &y = out[0].shape;
  const auto dense = contiguous_strides(x);
  std::vector<std::int64_t> strides(y.size(), 0);
  for (int d = x.rank() - 1, o = y.rank() - 1; d >= 0; --d, --o) strides[o] = x[d] == 1 ? 0 : dense[d];
  copy_from(in[0], out[0], strides);
}

void slice(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  auto strides = contiguous_strides(in[0].shape);
  const auto &begin = attrs.ints("begin"), &steps = attrs.ints("steps");
  std::int64_t base = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    base += begin[d] * strides[d];
    strides[d] *= steps[d];
  }
  copy_from(in[0], out[0], strides, base);
}

void slice_update(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  reshape(in.first(1), out, attrs, nullptr);
  auto strides = contiguous_strides(out[0].shape);
  const auto &begin = attrs.ints("begin"), &steps = attrs.ints("steps");
  std::int64_t base = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    base += begin[d] * strides[d];
    strides[d] *= steps[d];
  }
  dispatch_bits(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    walk(in[1].shape, strides, base, [&](std::int64_t i, std::int64_t at) { out[0].as<T>()[at] = in[1].as<T>()[i]; });
  });
}

void pad(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  auto strides = contiguous_strides(out[0].shape);
  const auto &low = attrs.ints("low"), &interior = attrs.ints("interior");
  std::int64_t base = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    base += low[d] * strides[d];
    strides[d] *= interior[d] + 1;
  }
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    T* y = out[0].as<T>();
    std::fill_n(y, out[0].shape.numel(), from_attr<T>(attrs.at("value")));
    walk(in[0].shape, strides, base, [&](std::int64_t i, std::int64_t at) { y[at] = in[0].as<T>()[i]; });
  });
}

void concat(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  const auto axis = static_cast<int>(attrs.integer("axis"));
  const auto strides = contiguous_strides(out[0].shape);
  dispatch_bits(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    std::int64_t base = 0;
    for (const auto& x : in) {
      walk(x.shape, strides, base, [&](std::int64_t i, std::int64_t at) { out[0].as<T>()[at] = x.as<T>()[i]; });
      base += x.shape[axis] * strides[axis];
    }
  });
}

void iota(Arrays, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  std::vector<std::int64_t> strides(out[0].shape.size(), 0);
  strides[static_cast<std::size_t>(attrs.integer("axis"))] = 1;
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    walk(out[0].shape, strides, 0, [&](std::int64_t i, std::int64_t at) { out[0].as<T>()[i] = narrow<T>(at); });
  });
}

void constant(Arrays, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    std::fill_n(out[0].as<T>(), out[0].shape.numel(), from_attr<T>(attrs.at("value")));
  });
}

}  // namespace undertow::ops::reference
