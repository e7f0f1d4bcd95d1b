// SPDX-License-Identifier: Apache-2.0
// ir/attrs.h: the static arguments of a node.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "undertow/base/dtype.h"
#include "undertow/base/hash.h"

namespace undertow::ir {

using AttrValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, DType>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, AttrValue>> items) : items_(items) {}

  /// Throws KeyError when absent.
  const AttrValue& at(std::string_view name) const;
  const AttrValue* find(std::string_view name) const;
  void set(std::string name, AttrValue value);

  bool flag(std::string_view name) const { return std::get<bool>(at(name)); }
  std::int64_t integer(std::string_view name) const { return std::get<std::int64_t>(at(name)); }
  double number(std::string_view name) const { return std::get<double>(at(name)); }
  const std::string& text(std::string_view name) const { return std::get<std::string>(at(name)); }
  const std::vector<std::int64_t>& ints(std::string_view name) const {
    return std::get<std::vector<std::int64_t>>(at(name));
  }
  DType dtype(std::string_view name) const { return std::get<DType>(at(name)); }

  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool empty() const { return items_.empty(); }
  void hash(Hasher& h) const;
  friend bool operator==(const Attrs&, const Attrs&) = default;

 private:
  std::vector<std::pair<std::string, AttrValue>> items_;
};

/// "3", "2.5", "true", "\"text\"", "[1, 2]", "Float32": the form the printer writes and the parser reads.
std::string to_text(const AttrValue& value);

}  // namespace undertow::ir
