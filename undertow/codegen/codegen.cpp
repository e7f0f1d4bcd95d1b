// SPDX-License-Identifier: Apache-2.0
#include "undertow/codegen/codegen.h"

#include <mutex>
#include <unordered_map>

#include "undertow/base/check.h"
#include "undertow/codegen/isa.h"
#include "undertow/codegen/jit.h"
#include "undertow/codegen/object_cache.h"
#include "undertow/codegen/schedule.h"

namespace undertow::codegen {
namespace {

constexpr int kCodegenVersion = 1;
constexpr std::size_t kMaxKernels = 16384;  // in memory; more than any program has

struct Cache {
  std::mutex mutex;
  std::unordered_map<Digest, CompiledNest, DigestHash> kernels;
  CompileStats stats;
};
/// Never destroyed: threads may still run its code at exit.
Cache& cache() {
  static Cache* const instance = new Cache;
  return *instance;
}

Digest module_key(std::span<const Digest> hashes, const Isa& isa) {
  Hasher h;
  h.add(kCodegenVersion)
      .add(std::string_view(llvm_version()))
      .add(std::string_view(isa.cpu))
      .add(std::string_view(isa.tune));
  h.add(isa.lanes).word(build_digest().a).word(build_digest().b);
  for (const auto& d : hashes) h.word(d.a).word(d.b);
  return h.digest();
}

/// The object's functions, from disk if it is there and can be linked.
std::shared_ptr<LoadedObject> load(std::span<const NestFunction> functions, std::span<const Digest> hashes,
                                   CompileStats& stats) {
  const Isa& isa = host_isa();
  const ObjectCache disk;
  const Digest key = module_key(hashes, isa);
  if (auto object = disk.find(key)) {
    try {
      auto loaded = load_object(*object);
      loaded->address(functions[0].name);
      ++stats.modules_from_disk;
      return loaded;
    } catch (const Error&) {
      // An object that does not link is a miss.
    }
  }
  const std::string object = compile_object(functions, isa);
  ++stats.modules_compiled;
  stats.nests_compiled += static_cast<std::int64_t>(functions.size());
  disk.store(key, object);
  return load_object(object);
}

}  // namespace

std::vector<CompiledNest> compile(std::span<const ir::LoopNest* const> nests) {
  auto& c = cache();
  const std::lock_guard lock(c.mutex);
  if (c.kernels.size() > kMaxKernels) c.kernels.clear();
  std::vector<Digest> hashes, missing;
  std::vector<Schedule> schedules;
  std::vector<NestFunction> functions;
  std::unordered_map<Digest, CompiledNest, DigestHash> compiled;
  for (const auto* nest : nests) {
    const Digest hash = hashes.emplace_back(nest->hash());
    if (c.kernels.contains(hash)) {
      ++c.stats.nests_in_memory;
      continue;
    }
    if (!compiled.try_emplace(hash).second) continue;
    missing.push_back(hash);
    schedules.push_back(make_schedule(*nest, host_isa().lanes));
    functions.push_back({nest, nullptr, "undertow_" + hash.hex()});
  }
  if (!functions.empty()) {
    for (std::size_t i = 0; i < functions.size(); ++i) functions[i].schedule = &schedules[i];
    const auto module = load(functions, missing, c.stats);
    for (std::size_t i = 0; i < functions.size(); ++i)
      c.kernels[missing[i]] = {reinterpret_cast<CompiledNest::Fn>(module->address(functions[i].name)),
                               schedules[i].units, schedules[i].cost, schedules[i].in_place_ok, module};
  }
  std::vector<CompiledNest> results;
  for (const auto& hash : hashes) results.push_back(c.kernels.at(hash));
  return results;
}

CompileStats compile_stats() {
  auto& c = cache();
  const std::lock_guard lock(c.mutex);
  return c.stats;
}

void clear_memory_cache() {
  auto& c = cache();
  const std::lock_guard lock(c.mutex);
  c.kernels.clear();
}

}  // namespace undertow::codegen
