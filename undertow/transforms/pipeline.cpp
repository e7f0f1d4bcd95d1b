// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/pipeline.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "undertow/transforms/casts.h"
#include "undertow/transforms/commit.h"
#include "undertow/transforms/fuse.h"
#include "undertow/transforms/layout.h"
#include "undertow/transforms/simplify.h"
#include "undertow/transforms/small_matmul.h"
#include "undertow/transforms/split_reductions.h"

namespace undertow::transforms {
namespace {

/// Whether UNDERTOW_DUMP asks for what goes by this name.
bool shown(std::string_view name) {
  static const char* wanted = std::getenv("UNDERTOW_DUMP");
  return wanted && (std::string_view(wanted) == "all" || wanted == name);
}

/// Runs one pass; checks and shows what it left.
template <typename Pass>
void run(const char* name, ir::Graph& graph, Pass pass) {
  static const bool check = std::getenv("UNDERTOW_VERIFY") != nullptr;
  const auto start = std::chrono::steady_clock::now();
  pass(graph);
  if (check) ir::verify(graph);
  if (!shown(name)) return;
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::fprintf(stderr, "---- after %s (%.2f ms, %zu nodes)\n%s\n", name, ms, graph.nodes.size(),
               ir::print(graph).c_str());
}

/// Shown with the graph: what mixed precision costs in memory.
void show_casts(const ir::Graph& graph) {
  if (!shown("casts")) return;
  for (const Cast& c : find_casts(graph))
    std::fprintf(stderr, "cast: %.*s, %.*s to %.*s, %lld bytes, cell %s\n", static_cast<int>(name_of(c.edge).size()),
                 name_of(c.edge).data(), static_cast<int>(undertow::name_of(c.from).size()),
                 undertow::name_of(c.from).data(), static_cast<int>(undertow::name_of(c.to).size()),
                 undertow::name_of(c.to).data(), static_cast<long long>(c.bytes), c.cell.c_str());
}

}  // namespace

void optimize(ir::Graph& graph, const Target& target) {
  // The trace already holds forward, backward and update: gradients are taken while it is recorded (transforms/grad).
  run("trace", graph, [](ir::Graph&) {});
  run("simplify", graph, simplify);
  if (target.channel_block > 0)
    run("layout", graph, [&](ir::Graph& g) { layout(g, target.channel_block), simplify(g); });
  if (target.fuse) {
    run("small_matmul", graph, small_matmul);
    run("split_reductions", graph, split_reductions);
  }
  run("commit", graph, assign_phases);
  if (target.fuse) run("fuse", graph, fuse);
  show_casts(graph);
  // Then: plan (after the device has said how much scratch its kernels want), and lower. See runtime/compile.cpp.
}

}  // namespace undertow::transforms
