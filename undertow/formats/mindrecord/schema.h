// SPDX-License-Identifier: Apache-2.0
// formats/mindrecord/schema.h: what a row of a MindRecord file holds, and one row of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "undertow/tensor/tensor.h"

namespace undertow::formats::mindrecord {

enum class FieldType { kInt32, kInt64, kFloat32, kFloat64, kString, kBytes };

/// "int32", "string", ...
std::string_view name_of(FieldType type);
/// Throws ValueError for a type that MindRecord does not have.
FieldType field_type_of(std::string_view name);
/// Of the numeric types; kUInt8 for bytes.
DType dtype_of(FieldType type);

struct Field {
  std::string name;
  FieldType type = FieldType::kInt32;
  /// Of an array; one extent may be -1. Without it: a scalar, a text or bytes.
  std::optional<std::vector<std::int64_t>> shape;

  /// Bytes and arrays lie in blob pages, all others in raw pages.
  bool is_blob() const { return type == FieldType::kBytes || shape.has_value(); }
  /// "int64", or "int64 of shape [2, -1]".
  std::string str() const;
};

struct Schema {
  std::string description;
  std::vector<Field> fields;       ///< by name
  std::vector<std::string> index;  ///< fields in the index database, in its order

  /// Sorts the fields and checks them. Throws ValueError naming what MindRecord does not take.
  void check();
  /// Place of a field, -1 where there is none.
  int find(std::string_view name) const;
  std::size_t blobs() const;
};

/// int32, int64: int64_t; float32, float64: double; string: std::string; bytes: uint8 (n,); arrays: their dtype.
using Value = std::variant<std::int64_t, double, std::string, Tensor>;
/// One value a field, in the order of the schema.
using Record = std::vector<Value>;

/// Throws ValueError or TypeError naming `where` ("row 3") and the field unless the record fits the schema.
void check_record(const Schema& schema, const Record& record, const std::string& where);

/// Appends the raw page's part of a record (MessagePack) or the blob page's part, without the length before it.
void encode_raw(const Schema& schema, const Record& record, std::string& out);
/// Returns the bytes that packing has saved.
std::int64_t encode_blob(const Schema& schema, const Record& record, std::string& out);

/// For messages.
struct Origin {
  const std::string& path;
  std::int64_t row;
  std::uint64_t offset;
  std::string str() const;
};
/// The scalars of a raw part: fields that `wanted` does not ask for are left alone. Throws FormatError naming the
/// origin.
void decode_raw(const Schema& schema, std::span<const std::uint8_t> bytes, const std::vector<bool>& wanted,
                Record& record, const Origin& origin);
void decode_blob(const Schema& schema, std::span<const std::uint8_t> bytes, const std::vector<bool>& wanted,
                 Record& record, const Origin& origin);

}  // namespace undertow::formats::mindrecord
