// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/processes.h"

#include <mutex>
#include <utility>

#include "undertow/base/check.h"
#include "undertow/data/lazy.h"
#include "undertow/data/process_pool.h"

namespace undertow::data {
namespace {

/// The pool of one part: there while a pipeline runs that uses it.
class PoolOf {
 public:
  std::shared_ptr<void> prepare(const std::string& name, const ProcessPool::Work& work, int workers) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<ProcessPool> pool = pool_.lock();
    if (!pool || pool->broken()) pool_ = pool = ProcessPool::start(name, work, workers);
    return pool;
  }
  /// Null outside a pipeline.
  std::shared_ptr<ProcessPool> get() const {
    const std::lock_guard lock(mutex_);
    return pool_.lock();
  }

 private:
  mutable std::mutex mutex_;
  std::weak_ptr<ProcessPool> pool_;
};

class ProcessMap final : public MapOp {
 public:
  explicit ProcessMap(std::shared_ptr<MapOp> op) : op_(std::move(op)) {}
  std::string name() const override { return op_->name(); }
  int arity() const override { return op_->arity(); }
  std::shared_ptr<void> prepare(int workers) override {
    return pool_.prepare(
        name(), [op = op_](std::span<const Row> rows, const RowContext& c) { return (*op)(rows[0], c); }, workers);
  }
  Row operator()(const Row& in, const RowContext& context) override {
    const auto pool = pool_.get();
    if (!pool) return (*op_)(in, context);
    LazyRow out(Row(), false);
    pool->run({&in, 1}, context, out);
    return std::move(out.finish());
  }

 private:
  std::shared_ptr<MapOp> op_;
  PoolOf pool_;
};

class ProcessSource final : public Source {
 public:
  explicit ProcessSource(std::shared_ptr<Source> source) : source_(std::move(source)) {
    UNDERTOW_CHECK(source_->size() >= 0, ValueError, "{} has no random access, so it cannot run in worker processes",
                   source_->name());
  }
  std::string name() const override { return source_->name(); }
  std::string origin(std::int64_t index) const override { return source_->origin(index); }
  std::int64_t size() const override { return source_->size(); }
  std::optional<std::vector<std::int64_t>> labels(const std::string& column) override {
    return source_->labels(column);
  }
  std::vector<std::int64_t> file_rows() const override { return source_->file_rows(); }
  std::vector<std::pair<std::string, std::int64_t>> classes() const override { return source_->classes(); }
  std::shared_ptr<void> prepare(int workers) override {
    return pool_.prepare(
        name(),
        [source = source_](std::span<const Row>, const RowContext& at) {
          LazyRow row(Row(), false);
          source->fetch_lazy(at, row);
          return std::move(row.finish());
        },
        workers);
  }
  void fetch_lazy(const RowContext& at, LazyRow& out) override {
    const auto pool = pool_.get();
    if (!pool) return source_->fetch_lazy(at, out);
    pool->run({}, at, out);
  }

 private:
  std::shared_ptr<Source> source_;
  PoolOf pool_;
};

class ProcessCollate final : public CollateOp {
 public:
  explicit ProcessCollate(std::shared_ptr<CollateOp> op) : op_(std::move(op)) {}
  std::shared_ptr<void> prepare(int workers) override {
    return pool_.prepare(
        "the batch function", [op = op_](std::span<const Row> rows, const RowContext& c) { return (*op)(rows, c); },
        workers);
  }
  Row operator()(std::span<const Row> rows, const RowContext& context) override {
    const auto pool = pool_.get();
    if (!pool) return (*op_)(rows, context);
    LazyRow out(Row(), false);
    pool->run(rows, context, out);
    return std::move(out.finish());
  }

 private:
  std::shared_ptr<CollateOp> op_;
  PoolOf pool_;
};

}  // namespace

std::shared_ptr<MapOp> in_processes(std::shared_ptr<MapOp> op) { return std::make_shared<ProcessMap>(std::move(op)); }
std::shared_ptr<Source> in_processes(std::shared_ptr<Source> source) {
  return std::make_shared<ProcessSource>(std::move(source));
}
std::shared_ptr<CollateOp> in_processes(std::shared_ptr<CollateOp> op) {
  return std::make_shared<ProcessCollate>(std::move(op));
}

}  // namespace undertow::data
