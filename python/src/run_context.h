// SPDX-License-Identifier: Apache-2.0
// python/src/run_context.h: RunContext as Python sees it. It may be kept by a user for longer than the run lasts.
#pragma once

#include <memory>

#include "python/src/common.h"
#include "undertow/train/callback.h"

namespace undertow::python {

/// Shared by a context, its parameters and who ends them: null once the run is over. Where a program makes its own
/// (RunContext(params)), they live here.
struct ContextLink {
  RunContext* context = nullptr;
  std::unique_ptr<CallbackParams> own_params;
  std::unique_ptr<RunContext> own_context;
};

class ContextObject {
 public:
  explicit ContextObject(std::shared_ptr<ContextLink> link) : link_(std::move(link)) {}
  /// Throws RuntimeError after the run.
  RunContext& get() const;
  const std::shared_ptr<ContextLink>& link() const { return link_; }

 private:
  std::shared_ptr<ContextLink> link_;
};

/// A callback's context object: one a run.
class ContextHolder {
 public:
  /// Call with the GIL.
  nb::object object_for(RunContext& context);
  void end();
  ~ContextHolder() { end(); }

 private:
  std::shared_ptr<ContextLink> link_;
  nb::object object_;
};

void bind_run_context(nb::module_& m);

}  // namespace undertow::python
