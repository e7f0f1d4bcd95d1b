// SPDX-License-Identifier: Apache-2.0
// data/process_pool.h: forked workers that make rows, one at a time each.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "undertow/data/lazy.h"

namespace undertow::data {

class ProcessPool : public std::enable_shared_from_this<ProcessPool> {
 public:
  using Work = std::function<Row(std::span<const Row> rows, const RowContext& context)>;

  /// Forks `workers` processes, each of which runs `work` for what run() is given. From a thread that may fork: the
  /// caller's, before the pipeline's. `name` is for messages. Throws RuntimeError where the system gives no more.
  static std::shared_ptr<ProcessPool> start(std::string name, const Work& work, int workers);
  /// Ends the workers; one that is busy is killed.
  ~ProcessPool();
  ProcessPool(const ProcessPool&) = delete;

  /// The row that a worker makes; waits for a free worker. Columns may lie in its memory, and keep it, until they are
  /// written. From any thread. Throws what the work threw, DataError where the worker ended, Stopped where
  /// context.stop was set.
  void run(std::span<const Row> rows, const RowContext& context, LazyRow& out);
  /// A worker ended by itself; the pool is not to be used any more.
  bool broken();

 private:
  struct Worker;
  class Lease;

  explicit ProcessPool(std::string name) : name_(std::move(name)) {}
  void fork_worker(const Work& work);
  std::shared_ptr<Worker> take(const RowContext& context);
  void give_back(const std::shared_ptr<Worker>& worker);
  void send(Worker& worker, std::span<const Row> rows, const RowContext& context);
  std::uint64_t receive(Worker& worker, const RowContext& context);
  [[noreturn]] void ended(Worker& worker, const RowContext& context);
  [[noreturn]] void raise(const std::byte* packed) const;

  std::string name_;
  std::vector<std::shared_ptr<Worker>> workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Worker>> idle_;
  bool broken_ = false;
};

}  // namespace undertow::data
