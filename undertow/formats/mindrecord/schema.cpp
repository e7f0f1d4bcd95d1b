// SPDX-License-Identifier: Apache-2.0
#include "undertow/formats/mindrecord/schema.h"

#include <algorithm>
#include <array>
#include <limits>

#include "undertow/base/check.h"

namespace undertow::formats::mindrecord {
namespace {

struct TypeRow {
  FieldType type;
  std::string_view name;
  DType dtype;
  bool arrays;
};
constexpr std::array<TypeRow, 6> kTypes{{{FieldType::kInt32, "int32", DType::kInt32, true},
                                         {FieldType::kInt64, "int64", DType::kInt64, true},
                                         {FieldType::kFloat32, "float32", DType::kFloat32, true},
                                         {FieldType::kFloat64, "float64", DType::kFloat64, true},
                                         {FieldType::kString, "string", DType::kUInt8, false},
                                         {FieldType::kBytes, "bytes", DType::kUInt8, false}}};
constexpr std::size_t kMostFields = 100;

const TypeRow& row_of(FieldType type) { return kTypes[static_cast<std::size_t>(type)]; }

bool is_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
}

/// Whether an array of this shape can be given the field's.
bool fits(const std::vector<std::int64_t>& wanted, const Shape& shape) {
  std::int64_t known = 1;
  bool open = false;
  for (const std::int64_t d : wanted) {
    if (d < 0) open = true;
    else known *= d;
  }
  if (!open) return known == shape.numel();
  return known > 0 ? shape.numel() % known == 0 : shape.numel() == 0;
}

const char* kind_of(const Value& value) {
  constexpr std::array<const char*, 4> kKinds{"an integer", "a float", "a text", "an array"};
  return kKinds[value.index()];
}

}  // namespace

std::string_view name_of(FieldType type) { return row_of(type).name; }

FieldType field_type_of(std::string_view name) {
  for (const TypeRow& t : kTypes)
    if (t.name == name) return t.type;
  throw ValueError(
      fmt::format("MindRecord has no type '{}'; a field is int32, int64, float32, float64, string or bytes", name));
}

DType dtype_of(FieldType type) { return row_of(type).dtype; }

std::string Field::str() const {
  if (!shape) return std::string(name_of(type));
  return fmt::format("{} of shape [{}]", name_of(type), fmt::join(*shape, ", "));
}

void Schema::check() {
  UNDERTOW_CHECK(!fields.empty(), ValueError, "the schema has no fields");
  UNDERTOW_CHECK(fields.size() <= kMostFields, ValueError, "the schema has {} fields; MindRecord takes at most {}",
                 fields.size(), kMostFields);
  std::ranges::sort(fields, {}, &Field::name);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& f = fields[i];
    UNDERTOW_CHECK(is_name(f.name), ValueError, "the field name '{}' is not made of letters, digits and '_'", f.name);
    UNDERTOW_CHECK(i == 0 || fields[i - 1].name != f.name, ValueError, "the field '{}' occurs twice", f.name);
    if (!f.shape) continue;
    UNDERTOW_CHECK(row_of(f.type).arrays, ValueError, "the field '{}' of type {} cannot have a shape", f.name,
                   name_of(f.type));
    UNDERTOW_CHECK(!f.shape->empty() && f.shape->size() <= static_cast<std::size_t>(Shape::kMaxRank), ValueError,
                   "the shape of the field '{}' must have 1 to {} extents, not {}", f.name, Shape::kMaxRank,
                   f.shape->size());
    UNDERTOW_CHECK(std::ranges::count_if(*f.shape, [](std::int64_t d) { return d < 0; }) <= 1 &&
                       *std::ranges::min_element(*f.shape) >= -1,
                   ValueError, "the shape [{}] of the field '{}' may hold one -1 and nothing else below 0",
                   fmt::join(*f.shape, ", "), f.name);
  }
  for (std::size_t i = 0; i < index.size(); ++i) {
    const int at = find(index[i]);
    UNDERTOW_CHECK(at >= 0, ValueError, "the index field '{}' is not in the schema", index[i]);
    UNDERTOW_CHECK(!fields[static_cast<std::size_t>(at)].is_blob(), ValueError,
                   "the field '{}' ({}) cannot be an index: only numbers and texts can", index[i],
                   fields[static_cast<std::size_t>(at)].str());
    UNDERTOW_CHECK(std::find(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(i), index[i]) ==
                       index.begin() + static_cast<std::ptrdiff_t>(i),
                   ValueError, "the index field '{}' occurs twice", index[i]);
  }
}

int Schema::find(std::string_view name) const {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == name) return static_cast<int>(i);
  return -1;
}

std::size_t Schema::blobs() const { return static_cast<std::size_t>(std::ranges::count_if(fields, &Field::is_blob)); }

void check_record(const Schema& schema, const Record& record, const std::string& where) {
  UNDERTOW_CHECK(record.size() == schema.fields.size(), ValueError, "{} has {} values for {} fields", where,
                 record.size(), schema.fields.size());
  for (std::size_t i = 0; i < record.size(); ++i) {
    const Field& f = schema.fields[i];
    const Value& v = record[i];
    const std::size_t wanted = f.is_blob()                                                      ? 3
                               : f.type == FieldType::kString                                   ? 2
                               : f.type == FieldType::kFloat32 || f.type == FieldType::kFloat64 ? 1
                                                                                                : 0;
    UNDERTOW_CHECK(v.index() == wanted, TypeError, "{}: the field '{}' is {}, but its value is {}", where, f.name,
                   f.str(), kind_of(v));
    if (const auto* n = std::get_if<std::int64_t>(&v); n && f.type == FieldType::kInt32)
      UNDERTOW_CHECK(*n >= std::numeric_limits<std::int32_t>::min() && *n <= std::numeric_limits<std::int32_t>::max(),
                     ValueError, "{}: the field '{}' is int32, which cannot hold {}", where, f.name, *n);
    const auto* t = std::get_if<Tensor>(&v);
    if (!t) continue;
    UNDERTOW_CHECK(t->defined() && t->dtype() == dtype_of(f.type), TypeError,
                   "{}: the field '{}' is {}, but its value is an array of {}", where, f.name, f.str(),
                   t->defined() ? undertow::name_of(t->dtype()) : "nothing");
    UNDERTOW_CHECK(!f.shape || fits(*f.shape, t->shape()), ValueError,
                   "{}: the field '{}' is {}, but its value has shape {}", where, f.name, f.str(), t->shape().str());
  }
}

}  // namespace undertow::formats::mindrecord
