// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "undertow/base/check.h"
#include "undertow/base/log.h"
#include "undertow/data/stream.h"

namespace undertow::data {
namespace {

constexpr int kMostWorkers = 64;

struct Compiled {
  std::unique_ptr<Stream> stream;
  std::vector<std::int32_t> leaves;  // those its items may carry
};

class Compiler {
 public:
  Compiler(Plan& plan, std::uint64_t seed) : plan_(plan) {
    plan_.seed = seed;
    plan_.fuse = config().fuse;
    plan_.autotune = config().autotune;
  }

  void run(const Node& root) {
    plan_.stream = compile(root).stream;
    if (plan_.autotune) plan_.workers = cores();
    // Only now is the number of threads known, and with it which limits can be reached.
    for (Leaf& leaf : plan_.leaves) {
      if (leaf.kind == Leaf::Kind::kSource) leaf.gate = gate(leaf.node);
      leaf.clock = clock(leaf.node, leaf.gate);
      for (Step& s : leaf.steps) {
        s.gate = gate(s.node);
        if (s.node->kind == Node::Kind::kMap) s.clock = clock(s.node, s.gate);
      }
    }
  }

 private:
  Compiled compile(const Node& node) {
    using Kind = Node::Kind;
    const std::uint32_t op = number(node);
    std::vector<Compiled> in;
    for (const NodePtr& n : node.inputs) in.push_back(compile(*n));
    switch (node.kind) {
      case Kind::kSource: return compile_source(node, op);
      case Kind::kMap:
      case Kind::kProject: return compile_map(node, op, std::move(in[0]));
      case Kind::kBatch: {
        const int threads = limit(node, node.workers, node.collate && !node.collate->thread_safe(), false);
        if (node.collate) {
          plan_.nice = std::min(plan_.nice, node.collate->nice());
          add_stage(*node.collate, std::max(threads, 1));
        }
        const std::int32_t leaf = add({Leaf::Kind::kBatch, &node, op});
        return {batch_stream(std::move(in[0].stream), node, leaf), {leaf}};
      }
      case Kind::kBucket: {
        limit(node, node.workers, false, true);
        Compiled rows = ordered(node, op, std::move(in[0]), nullptr);
        std::vector<std::int32_t> leaves;
        for (const NodePtr& bucket : node.buckets) leaves.push_back(add({Leaf::Kind::kBatch, bucket.get(), op}));
        if (node.length) plan_.nice = std::min(plan_.nice, 5);
        return {bucket_stream(std::move(rows.stream), node, leaves[0]), leaves};
      }
      case Kind::kCache:
        for (const std::int32_t l : in[0].leaves)
          if (Leaf& leaf = plan_.leaves[static_cast<std::size_t>(l)]; leaf.kind == Leaf::Kind::kSource)
            leaf.steps.push_back({&node, op});
        return std::move(in[0]);
      case Kind::kShuffle: return {shuffle_stream(std::move(in[0].stream), node, seed_of(op)), std::move(in[0].leaves)};
      case Kind::kRepeat: return {repeat_stream(std::move(in[0].stream), node), std::move(in[0].leaves)};
      case Kind::kTake: return {take_stream(std::move(in[0].stream), node.count), std::move(in[0].leaves)};
      case Kind::kSkip: return {skip_stream(std::move(in[0].stream), node.count), std::move(in[0].leaves)};
      case Kind::kSync:
        plan_.one_by_one = true;
        return {held_stream(std::move(in[0].stream), plan_, *node.sync), std::move(in[0].leaves)};
      case Kind::kFreeze: return {freeze_stream(std::move(in[0].stream)), std::move(in[0].leaves)};
      case Kind::kFilter: return ordered(node, op, std::move(in[0]), &node);
      case Kind::kZip:
      case Kind::kConcat: break;
    }
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::int32_t> leaves;
    for (Compiled& c : in) {
      streams.push_back(std::move(c.stream));
      leaves.insert(leaves.end(), c.leaves.begin(), c.leaves.end());
    }
    if (node.kind == Kind::kConcat) return {concat_stream(std::move(streams)), std::move(leaves)};
    const std::int32_t leaf = add({Leaf::Kind::kZip, &node, op});
    return {zip_stream(std::move(streams), leaf), {leaf}};
  }

  Compiled compile_source(const Node& node, std::uint32_t op) {
    Source& source = *node.source;
    plan_.nice = std::min(plan_.nice, source.nice());
    const bool serial = node.sequential() || source.ordered() || !source.thread_safe();
    const int threads = limit(node, std::max(node.workers, 1), serial, !source.waits());
    // A native source that was given no number does not ask for threads, nor is it in the way of those that there are.
    if (node.workers == 0 && !serial && !source.waits()) limits_[&node] = kMostWorkers;
    add_stage(source, threads);
    if (node.sequential()) {
      const std::int32_t leaf = add({Leaf::Kind::kValue, &node, op});
      plan_.reads_ahead = true;
      return {sequential_stream(node, leaf, plan_), {leaf}};
    }
    const std::int32_t leaf = add({Leaf::Kind::kSource, &node, op});
    Compiled c{source_stream(node, leaf, seed_of(op)), {leaf}};
    return source.ordered() ? ordered(node, op, std::move(c), nullptr) : std::move(c);
  }

  Compiled compile_map(const Node& node, std::uint32_t op, Compiled in) {
    if (!node.op) {
      for (const std::int32_t l : in.leaves) {
        Leaf& leaf = plan_.leaves[static_cast<std::size_t>(l)];
        if (leaf.kind == Leaf::Kind::kSource && leaf.steps.empty() && leaf.select.empty())
          for (const int p : node.place) leaf.select.push_back(~p);
        else leaf.steps.push_back({&node, op});
      }
      return in;
    }
    plan_.nice = std::min(plan_.nice, node.op->nice());
    const bool serial = node.op->ordered() || !node.op->thread_safe() || !node.callbacks.empty();
    const int threads = limit(node, node.workers > 0 ? node.workers : config().workers(), serial, !node.op->waits());
    add_stage(*node.op, threads);
    for (const std::int32_t l : in.leaves) plan_.leaves[static_cast<std::size_t>(l)].steps.push_back({&node, op});
    if (!node.callbacks.empty()) {
      plan_.one_by_one = true;
      const std::int32_t leaf = add({Leaf::Kind::kValue, &node, op});
      return {observed_stream(std::move(in.stream), plan_, leaf, node), {leaf}};
    }
    return node.op->ordered() ? ordered(node, op, std::move(in), nullptr) : std::move(in);
  }

  Compiled ordered(const Node& node, std::uint32_t op, Compiled in, const Node* filter) {
    const std::int32_t leaf = add({Leaf::Kind::kValue, &node, op});
    plan_.reads_ahead = true;
    return {ordered_stream(std::move(in.stream), plan_, leaf, filter), {leaf}};
  }

  void add_stage(Stage& stage, int threads) {
    if (std::ranges::none_of(plan_.stages, [&](auto& s) { return s.first == &stage; }))
      plan_.stages.emplace_back(&stage, threads);
  }
  std::int32_t add(Leaf leaf) {
    plan_.leaves.push_back(std::move(leaf));
    return static_cast<std::int32_t>(plan_.leaves.size()) - 1;
  }
  /// The height above the sources: what is built on top of a dataset, or beside it, never changes its order and draws.
  static std::uint32_t number(const Node& node) {
    std::uint32_t n = 0;
    for (const NodePtr& input : node.inputs) n = std::max(n, number(*input) + 1);
    return n;
  }
  std::uint64_t seed_of(std::uint32_t op) const { return plan_.seed + (std::uint64_t{op} + 1) * 0xD1B54A32D192ED03ull; }

  int limit(const Node& node, int workers, bool serial, bool cpu_bound) {
    static std::once_flag noted;
    const int most = cpu_bound || plan_.autotune ? cores() : std::max(kMostWorkers, cores());
    if (workers > most) {
      std::call_once(noted, [&] {
        log_warning(fmt::format("num_parallel_workers={} is more than is of use here; {} are used", workers, most));
      });
      workers = most;
    }
    if (serial) workers = 1;
    limits_[&node] = workers;
    if (!serial) tunable_.insert(&node);
    plan_.workers = std::max(plan_.workers, workers);
    // Worker processes are there for good, so there must be as many as the stage may come to have.
    return plan_.autotune && !serial ? cores() : workers;
  }
  static int cores() { return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)); }
  /// The node's, shared by all its leaves and steps. Where rows were made by another leaf already, that one's.
  StageClock* clock(const Node* node, Gate* gate) {
    const auto it = std::ranges::find(plan_.clocks, node, [](auto& c) { return c->node; });
    if (it != plan_.clocks.end()) return it->get();
    StageClock* c = plan_.clocks.emplace_back(std::make_unique<StageClock>()).get();
    c->node = node;
    const auto limit = limits_.find(node);
    c->workers = limit == limits_.end() || limit->second == 0 ? plan_.workers : limit->second;
    c->gate = gate;
    c->tunable = gate && tunable_.contains(node);
    return c;
  }
  Gate* gate(const Node* node) {
    const auto it = limits_.find(node);
    const bool tuned = plan_.autotune && tunable_.contains(node);
    if (it == limits_.end() || (!tuned && it->second >= plan_.workers)) return nullptr;
    Gate*& g = gates_[node];
    if (!g) g = plan_.gates.emplace_back(std::make_unique<Gate>(it->second)).get();
    return g;
  }

  Plan& plan_;
  std::map<const Node*, int> limits_;
  std::set<const Node*> tunable_;
  std::map<const Node*, Gate*> gates_;
};

}  // namespace

std::unique_ptr<Plan> make_plan(const Node& node, std::uint64_t seed) {
  auto plan = std::make_unique<Plan>();
  Compiler(*plan, seed).run(node);
  return plan;
}

}  // namespace undertow::data
