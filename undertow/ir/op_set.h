// SPDX-License-Identifier: Apache-2.0
// ir/op_set.h: all operators by name. Filled once, by ops/register.cpp, family by family.
#pragma once

#include <deque>
#include <string_view>

#include "undertow/ir/op_def.h"

namespace undertow::ir {

class OpSet {
 public:
  /// The definition must be complete; a name may be added once. The reference stays valid.
  const OpDef& add(OpDef def);
  /// Throws KeyError.
  const OpDef& get(std::string_view name) const;
  const OpDef* find(std::string_view name) const;
  const std::deque<OpDef>& all() const { return defs_; }

 private:
  std::deque<OpDef> defs_;
};

/// The set of the process.
OpSet& op_set();

}  // namespace undertow::ir
