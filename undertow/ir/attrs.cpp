// SPDX-License-Identifier: Apache-2.0
#include "undertow/ir/attrs.h"

#include "undertow/base/check.h"

namespace undertow::ir {

const AttrValue* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : items_)
    if (key == name) return &value;
  return nullptr;
}

const AttrValue& Attrs::at(std::string_view name) const {
  const AttrValue* v = find(name);
  UNDERTOW_CHECK(v, KeyError, "no attribute '{}'", name);
  return *v;
}

void Attrs::set(std::string name, AttrValue value) {
  for (auto& [key, old] : items_)
    if (key == name) {
      old = std::move(value);
      return;
    }
  items_.emplace_back(std::move(name), std::move(value));
}

void Attrs::hash(Hasher& h) const {
  h.add(items_.size());
  for (const auto& [key, value] : items_) {
    h.add(std::string_view(key)).add(value.index());
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) h.add_range(v);
          else if constexpr (std::is_same_v<T, std::string>) h.add(std::string_view(v));
          else h.add(v);
        },
        value);
  }
}

std::string to_text(const AttrValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, std::int64_t>) return std::to_string(v);
        else if constexpr (std::is_same_v<T, double>) {
          std::string s = fmt::format("{}", v);  // shortest form that reads back equal
          return s.find_first_of(".einf") == std::string::npos ? s + ".0" : s;
        } else if constexpr (std::is_same_v<T, std::string>) return fmt::format("\"{}\"", v);
        else if constexpr (std::is_same_v<T, DType>) return std::string(name_of(v));
        else return fmt::format("[{}]", fmt::join(v, ", "));
      },
      value);
}

}  // namespace undertow::ir
