// SPDX-License-Identifier: Apache-2.0
// data/processes.h: parts of a pipeline that run in worker processes.
//
// A pipeline forks its workers when it starts, before its own threads, and ends them when it stops; they stay over
// epochs. Rows travel in memory that a worker shares with its parent, one row (or batch) at a time a worker. A worker
// runs at nice 19 with one compute thread, ends with its parent, and ignores Ctrl-C, which is the parent's business.
// Before a pipeline starts (describe), and outside one, the part runs where it is called.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "undertow/data/source.h"

namespace undertow::data {

/// The same operation, source or batch function, in worker processes: as many as its node has workers. What it throws
/// there is thrown here: Errors as what they are, others as hooks know them (ForkHooks), else as DataError with type
/// and text. DataError where a worker ends by itself, naming how and the row. Its draws must depend on the RowContext
/// only, so ordered() is false.
std::shared_ptr<MapOp> in_processes(std::shared_ptr<MapOp> op);
std::shared_ptr<Source> in_processes(std::shared_ptr<Source> source);  ///< random access
std::shared_ptr<CollateOp> in_processes(std::shared_ptr<CollateOp> op);

/// What a host language does around a fork, and how its exceptions travel. All optional.
struct ForkHooks {
  std::function<void()> before;     ///< on the forking thread
  std::function<void()> in_parent;  ///< after it; also where the fork failed
  std::function<void()> in_child;   ///< for good
  /// In the child: the exception as bytes, where it is one of the language.
  std::function<std::optional<std::string>(const std::exception_ptr&)> pack;
  /// In the parent: throws it again.
  std::function<void(const std::string&)> rethrow;
};
/// Set once, before any pipeline starts.
void set_fork_hooks(ForkHooks hooks);

}  // namespace undertow::data
