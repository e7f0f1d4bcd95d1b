// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/function_cell.h"

#include <string_view>

#include "undertow/base/check.h"
#include "undertow/runtime/trace.h"

namespace undertow::nn::detail {

void wrong_count(const Cell& cell, std::size_t least, std::size_t most, std::size_t count) {
  const std::string takes = least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
  throw TypeError(fmt::format("{} takes {} input{}, but got {}", cell.where(), takes, most == 1 ? "" : "s", count));
}

void rethrow_with_path(const Error& error) {
  const std::string path = runtime::current_cell_path();
  if (!path.empty() && std::string_view(error.what()).find(path) == std::string_view::npos)
    error.rethrow_with("cell " + path);
}

template <>
bool scalar<bool>(const Value& v) {
  if (const bool* b = std::get_if<bool>(&v.variant())) return *b;
  throw TypeError("expected True or False as input of a cell");
}

template <>
std::int64_t scalar<std::int64_t>(const Value& v) {
  if (const auto* i = std::get_if<std::int64_t>(&v.variant())) return *i;
  throw TypeError("expected an int as input of a cell");
}

template <>
double scalar<double>(const Value& v) {
  if (const auto* d = std::get_if<double>(&v.variant())) return *d;
  if (const auto* i = std::get_if<std::int64_t>(&v.variant())) return static_cast<double>(*i);
  throw TypeError("expected a number as input of a cell");
}

template <>
std::string scalar<std::string>(const Value& v) {
  if (const auto* s = std::get_if<std::string>(&v.variant())) return *s;
  throw TypeError("expected a text as input of a cell");
}

}  // namespace undertow::nn::detail
