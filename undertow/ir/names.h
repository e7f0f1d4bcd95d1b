// SPDX-License-Identifier: Apache-2.0
// ir/names.h: spelling of the enums in the text form.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "undertow/ir/graph.h"

namespace undertow::ir {

inline constexpr std::array<std::string_view, 41> kOpcodeNames{
    "input", "const", "index", "cast",  "add",   "sub", "mul",   "div", "rem",   "min", "max", "pow",  "neg",   "abs",
    "sqrt",  "floor", "ceil",  "round", "trunc", "exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "erf",   "atan2",
    "eq",    "ne",    "lt",    "le",    "gt",    "ge",  "and",   "or",  "xor",   "not", "shl", "shr",  "select"};
inline constexpr std::string_view kRandomName = "random";
static_assert(kOpcodeNames.size() == static_cast<std::size_t>(Opcode::kRandom));

inline constexpr std::array<std::string_view, 4> kReduceNames{"sum", "prod", "max", "min"};
inline constexpr std::array<std::string_view, 4> kInputKindNames{"batch", "capture", "step", "argument"};

inline std::string_view name_of(Opcode op) {
  return op < Opcode::kRandom ? kOpcodeNames[static_cast<std::size_t>(op)] : kRandomName;
}

/// Position of `name` in a table above.
template <std::size_t N>
std::optional<int> find_name(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<int>(at - names.begin());
}
inline std::optional<Opcode> opcode_from_name(std::string_view name) {
  if (name == kRandomName) return Opcode::kRandom;
  const auto at = find_name(kOpcodeNames, name);
  return at ? std::optional(static_cast<Opcode>(*at)) : std::nullopt;
}

}  // namespace undertow::ir
