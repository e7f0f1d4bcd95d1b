// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/eager.h"

#include <mutex>
#include <unordered_map>

#include "undertow/backend/backend.h"
#include "undertow/base/check.h"
#include "undertow/runtime/context.h"
#include "undertow/runtime/session.h"

namespace undertow::runtime {
namespace {

struct OpKernel {
  ir::Graph graph;  // the one node; kernels may refer to it
  std::vector<std::unique_ptr<backend::Kernel>> kernels;
  std::mutex mutex;  // one call at a time: bind, run, unbind
};

constexpr std::size_t kMaxKernels = 4096;  // distinct (op, types); beyond that the cache starts anew

struct Cache {
  std::mutex mutex;
  std::unordered_map<Digest, std::shared_ptr<OpKernel>, DigestHash> entries;
};
// Leaked on purpose: other threads may run ops while the process exits.
Cache& cache() {
  static auto* c = new Cache;
  return *c;
}

std::shared_ptr<OpKernel> make_kernel(const ir::OpDef& op, const std::vector<Tensor>& inputs, const ir::Attrs& attrs,
                                      backend::Backend& device) {
  auto k = std::make_shared<OpKernel>();
  std::vector<ir::ValueId> ids;
  for (const auto& t : inputs) ids.push_back(k->graph.add_input({}, {t.dtype(), t.shape()}));
  const ir::NodeId n = k->graph.add_node(op, ids, attrs);
  k->graph.outputs = k->graph.nodes[n].outputs;
  k->kernels = device.make_kernels(k->graph);
  return k;
}

}  // namespace

std::vector<Tensor> run_op(const ir::OpDef& op, const std::vector<Tensor>& inputs, const ir::Attrs& attrs,
                           const std::vector<ir::TensorType>& outputs, const ir::Scope& scope) {
  if (op.view) return {inputs[0].view(outputs[0].shape)};
  std::vector<Tensor> results;
  for (const auto& t : outputs) results.emplace_back(t.dtype, t.shape);

  Hasher h;
  h.add(std::string_view(op.name)).add(std::string_view(context().device)).add(inputs.size());
  for (const auto& t : inputs) h.add(t.dtype()).add_range(t.shape());
  attrs.hash(h);
  const Digest key = h.digest();
  std::shared_ptr<OpKernel> kernel;
  {
    const std::lock_guard lock(cache().mutex);
    if (const auto it = cache().entries.find(key); it != cache().entries.end()) kernel = it->second;
  }
  if (!kernel) {
    kernel = make_kernel(op, inputs, attrs, backend::get_backend(context().device));
    const std::lock_guard lock(cache().mutex);
    if (cache().entries.size() >= kMaxKernels) cache().entries.clear();
    cache().entries.emplace(key, kernel);
  }
  backend::Kernel* k = kernel->kernels.at(0).get();
  if (!k) return results;

  ir::StepError error;
  {
    const std::lock_guard lock(kernel->mutex);
    thread_local Ref<Storage> scratch;
    const std::size_t bytes = k->scratch_bytes();
    if (bytes && (!scratch || scratch->bytes() < bytes)) scratch = make_ref<Storage>(bytes);
    std::vector<void*> args;
    for (const auto& t : inputs) args.push_back(t.data());
    for (const auto& t : results) args.push_back(t.data());
    args.push_back(bytes ? scratch->data() : nullptr);
    const backend::Instr instr = k->bind(args);
    instr.run(instr.context, &error);
    k->unbind();
  }
  if (error.code != ir::StepError::kNone) raise_step_error(error, op.name, scope);
  return results;
}

void raise_step_error(const ir::StepError& error, const std::string& op, const ir::Scope& scope) {
  std::string where = " (in " + op;
  if (!scope.cell.empty()) where += ", cell " + scope.cell;
  if (!scope.line.empty()) where += ", at " + scope.line;
  where += ")";
  if (error.code == ir::StepError::kIndexOutOfRange)
    throw IndexError(fmt::format("index {} at row {} is out of range: allowed are {} to {}{}", error.value, error.row,
                                 error.low, error.high - 1, where));
  throw NonFiniteLoss("a value that must be finite is NaN or infinite" + where);
}

}  // namespace undertow::runtime
