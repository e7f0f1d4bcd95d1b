// SPDX-License-Identifier: Apache-2.0
#include "undertow/ir/op_set.h"

#include "undertow/base/check.h"

namespace undertow::ir {

const OpDef& OpSet::add(OpDef def) {
  UNDERTOW_ASSERT(!find(def.name) && def.infer);
  UNDERTOW_ASSERT(def.elementwise == static_cast<bool>(def.expr));
  return defs_.emplace_back(std::move(def));
}

const OpDef* OpSet::find(std::string_view name) const {
  for (const auto& d : defs_)
    if (d.name == name) return &d;
  return nullptr;
}

const OpDef& OpSet::get(std::string_view name) const {
  const OpDef* d = find(name);
  UNDERTOW_CHECK(d, KeyError, "no operator is named '{}'", name);
  return *d;
}

OpSet& op_set() {
  static OpSet set;
  return set;
}

}  // namespace undertow::ir
