// SPDX-License-Identifier: Apache-2.0
// formats/mindrecord/record.cpp: rows to bytes and back.
//
// Raw part: a MessagePack map of the scalar fields by name, or {"id": 0} where there are none. Blob part: the only
// blob field's bytes, or for each its length (big-endian uint64) and bytes; 4 zero bytes where there is no blob field.
// Integer arrays are packed: the number of elements (big-endian uint32), 2 bits a width (1 << code bytes), then each
// element in that many bytes, little-endian.
#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>
#include <cstring>
#include <limits>

#include "undertow/base/check.h"
#include "undertow/formats/mindrecord/schema.h"

namespace undertow::formats::mindrecord {
namespace {

constexpr std::size_t kDummyBlob = 4;

void put_big(std::string& out, std::uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
}

// MessagePack, as far as a map of texts and numbers needs it. Source: github.com/msgpack/msgpack/blob/master/spec.md.

void pack_int(std::string& out, std::int64_t v) {
  if (v >= 0) {
    const auto u = static_cast<std::uint64_t>(v);
    if (u < 0x80) out += static_cast<char>(u);
    else if (u <= 0xFF) out += '\xcc', put_big(out, u, 1);
    else if (u <= 0xFFFF) out += '\xcd', put_big(out, u, 2);
    else if (u <= 0xFFFFFFFF) out += '\xce', put_big(out, u, 4);
    else out += '\xcf', put_big(out, u, 8);
    return;
  }
  const auto u = static_cast<std::uint64_t>(v);
  if (v >= -32) out += static_cast<char>(v);
  else if (v >= std::numeric_limits<std::int8_t>::min()) out += '\xd0', put_big(out, u, 1);
  else if (v >= std::numeric_limits<std::int16_t>::min()) out += '\xd1', put_big(out, u, 2);
  else if (v >= std::numeric_limits<std::int32_t>::min()) out += '\xd2', put_big(out, u, 4);
  else out += '\xd3', put_big(out, u, 8);
}

void pack_float(std::string& out, double v) {
  const auto narrow = static_cast<float>(v);
  if (static_cast<double>(narrow) == v && std::abs(v) <= std::numeric_limits<float>::max()) {
    out += '\xca';
    put_big(out, std::bit_cast<std::uint32_t>(narrow), 4);
  } else {
    out += '\xcb';
    put_big(out, std::bit_cast<std::uint64_t>(v), 8);
  }
}

void pack_text(std::string& out, std::string_view text) {
  const std::size_t n = text.size();
  UNDERTOW_CHECK(n <= 0xFFFFFFFF, ValueError, "a text of {} bytes is more than MindRecord holds", n);
  if (n < 32) out += static_cast<char>(0xa0 | n);
  else if (n <= 0xFF) out += '\xd9', put_big(out, n, 1);
  else if (n <= 0xFFFF) out += '\xda', put_big(out, n, 2);
  else out += '\xdb', put_big(out, n, 4);
  out.append(text);
}

void pack_map(std::string& out, std::size_t entries) {
  if (entries < 16) out += static_cast<char>(0x80 | entries);
  else out += '\xde', put_big(out, entries, 2);
}

/// Reads bytes with checks; a failure names the place.
class Cursor {
 public:
  Cursor(std::span<const std::uint8_t> bytes, const Origin& origin) : bytes_(bytes), origin_(origin) {}
  std::size_t left() const { return bytes_.size() - at_; }
  std::span<const std::uint8_t> take(std::uint64_t n) {
    if (n > left()) fail(fmt::format("{} bytes are needed, {} are left", n, left()));
    const auto part = bytes_.subspan(at_, static_cast<std::size_t>(n));
    at_ += static_cast<std::size_t>(n);
    return part;
  }
  std::uint64_t big(int n) {
    std::uint64_t v = 0;
    for (const std::uint8_t b : take(static_cast<std::uint64_t>(n))) v = v << 8 | b;
    return v;
  }
  /// The n bytes as a signed number.
  std::int64_t big_signed(int n) {
    const int unused = 64 - 8 * n;
    return static_cast<std::int64_t>(big(n) << unused) >> unused;
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw FormatError(fmt::format("{} is damaged, byte {} of the record: {}", origin_.str(), at_, why));
  }

 private:
  std::span<const std::uint8_t> bytes_;
  const Origin& origin_;
  std::size_t at_ = 0;
};

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view read_text(Cursor& in) {
  const auto tag = static_cast<std::uint8_t>(in.big(1));
  if ((tag & 0xe0) == 0xa0) return text_of(in.take(tag & 31));
  if (tag == 0xd9) return text_of(in.take(in.big(1)));
  if (tag == 0xda) return text_of(in.take(in.big(2)));
  if (tag == 0xdb) return text_of(in.take(in.big(4)));
  in.fail(fmt::format("a text was expected, the tag is {:#04x}", tag));
}

Value read_value(Cursor& in) {
  const auto tag = static_cast<std::uint8_t>(in.big(1));
  if (tag < 0x80) return std::int64_t{tag};
  if (tag >= 0xe0) return std::int64_t{static_cast<std::int8_t>(tag)};
  if ((tag & 0xe0) == 0xa0) return std::string(text_of(in.take(tag & 31)));
  switch (tag) {
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: return static_cast<std::int64_t>(in.big(1 << (tag - 0xcc)));
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: return in.big_signed(1 << (tag - 0xd0));
    case 0xca: return double{std::bit_cast<float>(static_cast<std::uint32_t>(in.big(4)))};
    case 0xcb: return std::bit_cast<double>(in.big(8));
    case 0xd9:
    case 0xda:
    case 0xdb: return std::string(text_of(in.take(in.big(1 << (tag - 0xd9)))));
    default: in.fail(fmt::format("a number or text was expected, the tag is {:#04x}", tag));
  }
}

int width_code(std::int64_t v) {
  if (v == static_cast<std::int8_t>(v)) return 0;
  if (v == static_cast<std::int16_t>(v)) return 1;
  return v == static_cast<std::int32_t>(v) ? 2 : 3;
}

template <typename T>
void pack_array(std::string& out, const Tensor& t) {
  const auto n = static_cast<std::size_t>(t.size());
  const T* values = static_cast<const T*>(t.data());
  put_big(out, n, 4);
  const std::size_t codes = out.size();
  out.append((n + 3) / 4, '\0');
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t v = values[i];
    const int code = width_code(v);
    out[codes + i / 4] = static_cast<char>(out[codes + i / 4] | code << (6 - 2 * (i % 4)));
    out.append(reinterpret_cast<const char*>(&v), std::size_t{1} << code);
  }
}

template <typename T>
void unpack_array(std::span<const std::uint8_t> codes, Cursor& in, Tensor& t) {
  T* values = static_cast<T*>(t.data());
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const int code = codes[static_cast<std::size_t>(i) / 4] >> (6 - 2 * (i % 4)) & 3;
    std::uint64_t v = 0;
    const auto bytes = in.take(std::uint64_t{1} << code);
    std::memcpy(&v, bytes.data(), bytes.size());
    const int unused = 64 - (8 << code);
    values[i] = static_cast<T>(static_cast<std::int64_t>(v << unused) >> unused);
  }
}

/// The field's shape with `n` elements.
Shape shape_of(const Field& f, std::uint64_t n, Cursor& in) {
  std::uint64_t known = 1;
  for (const std::int64_t d : *f.shape)
    if (d >= 0 && d != 0 && known > n / static_cast<std::uint64_t>(d)) known = n + 1;  // no overflow, and no fit
    else if (d >= 0) known *= static_cast<std::uint64_t>(d);
  Shape shape;
  const bool open = std::ranges::any_of(*f.shape, [](std::int64_t d) { return d < 0; });
  const bool fits = open ? known == 0 ? n == 0 : n % known == 0 : known == n;
  if (!fits) in.fail(fmt::format("the field '{}' is {}, but holds {} elements", f.name, f.str(), n));
  for (const std::int64_t d : *f.shape)
    shape.push_back(d >= 0 ? d : known == 0 ? 0 : static_cast<std::int64_t>(n / known));
  return shape;
}

Tensor read_blob(const Field& f, std::span<const std::uint8_t> bytes, const Origin& origin) {
  Cursor in(bytes, origin);
  const DType dtype = dtype_of(f.type);
  if (f.type == FieldType::kBytes || is_floating(dtype)) {
    const std::size_t element = size_of(dtype);
    if (bytes.size() % element != 0)
      in.fail(fmt::format("the field '{}' is {}, but has {} bytes", f.name, f.str(), bytes.size()));
    const std::uint64_t n = bytes.size() / element;
    Tensor t(dtype, f.shape ? shape_of(f, n, in) : Shape{static_cast<std::int64_t>(n)});
    if (!bytes.empty()) std::memcpy(t.data(), bytes.data(), bytes.size());
    return t;
  }
  const std::uint64_t n = in.big(4);
  const auto codes = in.take((n + 3) / 4);
  if (n > in.left()) in.fail(fmt::format("the field '{}' says {} elements, {} bytes are left", f.name, n, in.left()));
  Tensor t(dtype, shape_of(f, n, in));
  if (f.type == FieldType::kInt32) unpack_array<std::int32_t>(codes, in, t);
  else unpack_array<std::int64_t>(codes, in, t);
  if (in.left() != 0) in.fail(fmt::format("the field '{}' has {} bytes too many", f.name, in.left()));
  return t;
}

}  // namespace

std::string Origin::str() const { return fmt::format("{}, row {} at offset {},", path, row, offset); }

void encode_raw(const Schema& schema, const Record& record, std::string& out) {
  const std::size_t scalars = schema.fields.size() - schema.blobs();
  pack_map(out, std::max<std::size_t>(scalars, 1));
  if (scalars == 0) {
    pack_text(out, "id");
    pack_int(out, 0);
    return;
  }
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    if (schema.fields[i].is_blob()) continue;
    pack_text(out, schema.fields[i].name);
    if (const auto* n = std::get_if<std::int64_t>(&record[i])) pack_int(out, *n);
    else if (const auto* x = std::get_if<double>(&record[i])) pack_float(out, *x);
    else pack_text(out, std::get<std::string>(record[i]));
  }
}

std::int64_t encode_blob(const Schema& schema, const Record& record, std::string& out) {
  const std::size_t blobs = schema.blobs();
  if (blobs == 0) out.append(kDummyBlob, '\0');
  std::int64_t saved = 0;
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    const Field& f = schema.fields[i];
    if (!f.is_blob()) continue;
    const auto& t = std::get<Tensor>(record[i]);
    const std::size_t prefix = out.size();
    if (blobs > 1) out.append(8, '\0');
    const std::size_t start = out.size();
    if (f.type == FieldType::kInt32) pack_array<std::int32_t>(out, t);
    else if (f.type == FieldType::kInt64) pack_array<std::int64_t>(out, t);
    else if (t.nbytes()) out.append(static_cast<const char*>(t.data()), t.nbytes());
    const std::size_t bytes = out.size() - start;
    saved += static_cast<std::int64_t>(t.nbytes()) - static_cast<std::int64_t>(bytes);
    if (blobs > 1)
      for (int k = 0; k < 8; ++k) out[prefix + static_cast<std::size_t>(k)] = static_cast<char>(bytes >> (56 - 8 * k));
  }
  return saved;
}

void decode_raw(const Schema& schema, std::span<const std::uint8_t> bytes, const std::vector<bool>& wanted,
                Record& record, const Origin& origin) {
  Cursor in(bytes, origin);
  auto entries = in.big(1);
  if ((entries & 0xf0) == 0x80) entries &= 15;
  else if (entries == 0xde) entries = in.big(2);
  else if (entries == 0xdf) entries = in.big(4);
  else in.fail("it does not start with a map");
  std::bitset<128> found;  // a schema has at most 100 fields
  std::size_t next = 0;
  for (std::uint64_t k = 0; k < entries; ++k) {
    const std::string_view name = read_text(in);
    // Keys come in the fields' order, so that the next field is nearly always the one.
    while (next < schema.fields.size() && schema.fields[next].is_blob()) ++next;
    int at = next < schema.fields.size() && schema.fields[next].name == name ? static_cast<int>(next++) : -1;
    if (at < 0) at = schema.find(name);
    Value v = read_value(in);
    if (at < 0 || schema.fields[static_cast<std::size_t>(at)].is_blob()) continue;
    const auto i = static_cast<std::size_t>(at);
    found.set(i);
    if (!wanted[i]) continue;
    const Field& f = schema.fields[i];
    const bool is_float = f.type == FieldType::kFloat32 || f.type == FieldType::kFloat64;
    if (is_float && v.index() == 0) v = static_cast<double>(std::get<std::int64_t>(v));
    const std::size_t kind = is_float ? 1 : f.type == FieldType::kString ? 2 : 0;
    if (v.index() != kind) in.fail(fmt::format("the field '{}' is {}, but its value is not", f.name, f.str()));
    if (f.type == FieldType::kInt32 &&
        std::get<std::int64_t>(v) != static_cast<std::int32_t>(std::get<std::int64_t>(v)))
      in.fail(fmt::format("the field '{}' is int32, which cannot hold {}", f.name, std::get<std::int64_t>(v)));
    record[i] = std::move(v);
  }
  if (found.count() != schema.fields.size() - schema.blobs())
    in.fail(fmt::format("it has {} of the {} fields that are numbers or texts", found.count(),
                        schema.fields.size() - schema.blobs()));
}

void decode_blob(const Schema& schema, std::span<const std::uint8_t> bytes, const std::vector<bool>& wanted,
                 Record& record, const Origin& origin) {
  const std::size_t blobs = schema.blobs();
  Cursor in(bytes, origin);
  for (std::size_t i = 0; i < schema.fields.size() && blobs > 0; ++i) {
    const Field& f = schema.fields[i];
    if (!f.is_blob()) continue;
    const auto part = blobs == 1 ? in.take(in.left()) : in.take(in.big(8));
    if (wanted[i]) record[i] = read_blob(f, part, origin);
  }
  if (blobs > 0 && in.left() != 0) in.fail(fmt::format("{} bytes follow the last field", in.left()));
}

}  // namespace undertow::formats::mindrecord
