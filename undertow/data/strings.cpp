// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/strings.h"

#include <algorithm>
#include <cstring>

#include "undertow/base/check.h"

namespace undertow::data {
namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;

/// Memory that holds texts.
class TextStorage final : public Storage {
 public:
  using Storage::Storage;
};

std::u32string decode(std::string_view utf8) {
  std::u32string out;
  for (std::size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    const int more = lead < 0x80 ? 0 : lead >= 0xF0 && lead < 0xF8 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : -1;
    std::uint32_t code = more == 0 ? lead : more < 0 || lead >= 0xF8 ? kReplacement : lead & (0x3Fu >> more);
    int k = 0;
    for (; k < more && lead < 0xF8; ++k) {
      const std::size_t at = i + 1 + static_cast<std::size_t>(k);
      if (at >= utf8.size() || (static_cast<unsigned char>(utf8[at]) & 0xC0) != 0x80) break;
      code = code << 6 | (static_cast<unsigned char>(utf8[at]) & 0x3F);
    }
    constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (more > 0 && (k < more || code < kLeast[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)))
      code = kReplacement;
    out += static_cast<char32_t>(code);
    i += 1 + static_cast<std::size_t>(std::max(k, 0));
  }
  return out;
}

void encode(std::uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out += static_cast<char>((0xFF00u >> (more + 1) & 0xFFu) | code >> (6 * more));
  for (int k = more - 1; k >= 0; --k) out += static_cast<char>(0x80 | (code >> (6 * k) & 0x3F));
}

Tensor from_codes(std::span<const std::u32string> texts, const Shape& shape) {
  std::size_t width = 1;
  for (const auto& t : texts) width = std::max(width, t.size());
  Tensor out = text_tensor(DType::kUInt32, shape, static_cast<std::int64_t>(width));
  auto* p = static_cast<char32_t*>(out.data());
  for (const auto& t : texts) p = std::fill_n(std::copy(t.begin(), t.end(), p), width - t.size(), U'\0');
  return out;
}

}  // namespace

Tensor text_tensor(DType dtype, const Shape& shape, std::int64_t width) {
  Shape whole = shape;
  whole.push_back(width);
  return text_tensor(dtype, whole);
}

Tensor text_tensor(DType dtype, const Shape& whole) {
  UNDERTOW_ASSERT((dtype == DType::kUInt32 || dtype == DType::kUInt8) && whole.rank() >= 1);
  auto impl = make_ref<TensorImpl>();
  impl->dtype = dtype;
  impl->shape = whole;
  impl->storage = make_ref<TextStorage>(static_cast<std::size_t>(whole.numel()) * size_of(dtype));
  return Tensor(std::move(impl));
}

bool is_text(const Tensor& tensor) {
  return tensor.defined() && (tensor.dtype() == DType::kUInt32 || tensor.dtype() == DType::kUInt8) &&
         dynamic_cast<const TextStorage*>(tensor.impl()->storage.get()) != nullptr;
}

Shape text_shape(const Tensor& tensor) { return Shape(std::span(tensor.shape().begin(), tensor.shape().end() - 1)); }

Tensor text_of(std::string_view utf8) {
  const std::u32string codes = decode(utf8);
  return from_codes({&codes, 1}, {});
}

Tensor text_of(std::span<const std::string> utf8) {
  std::vector<std::u32string> codes;
  for (const std::string& t : utf8) codes.push_back(decode(t));
  return from_codes(codes, {static_cast<std::int64_t>(utf8.size())});
}

std::vector<std::string> texts_of(const Tensor& tensor) {
  UNDERTOW_CHECK(is_text(tensor), TypeError, "a column of texts is needed, this one holds {}", name_of(tensor.dtype()));
  const auto width = static_cast<std::size_t>(tensor.shape().back());
  const auto count = static_cast<std::size_t>(text_shape(tensor).numel());
  std::vector<std::string> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (tensor.dtype() == DType::kUInt8) {
      const char* p = static_cast<const char*>(tensor.data()) + i * width;
      std::size_t n = width;
      while (n > 0 && p[n - 1] == 0) --n;
      out[i].assign(p, n);
      continue;
    }
    const auto* p = static_cast<const std::uint32_t*>(tensor.data()) + i * width;
    std::size_t n = width;
    while (n > 0 && p[n - 1] == 0) --n;
    for (std::size_t k = 0; k < n; ++k) encode(p[k], out[i]);
  }
  return out;
}

Tensor widen(const Tensor& text, std::int64_t width) {
  const std::int64_t old = text.shape().back();
  if (old == width) return text;
  UNDERTOW_ASSERT(old < width);
  Tensor out = text_tensor(text.dtype(), text_shape(text), width);
  const std::size_t from = static_cast<std::size_t>(old) * size_of(text.dtype());
  const std::size_t to = static_cast<std::size_t>(width) * size_of(text.dtype());
  const auto* p = static_cast<const std::byte*>(text.data());
  auto* q = static_cast<std::byte*>(out.data());
  for (std::int64_t i = text_shape(text).numel(); i > 0; --i, p += from, q += to) {
    std::memcpy(q, p, from);
    std::memset(q + from, 0, to - from);
  }
  return out;
}

Tensor tensor_for(const ColumnSpec& spec) {
  return spec.text ? text_tensor(spec.dtype, spec.shape) : Tensor(spec.dtype, spec.shape);
}

}  // namespace undertow::data
