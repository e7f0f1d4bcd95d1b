// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/cpu/kernel_list.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "undertow/base/check.h"

namespace undertow::backend::cpu {
namespace {

using List = std::vector<Candidate>;

const Candidate kZero{"zero", zero_fill}, kReference{"reference", reference_kernel}, kWidened{"widened", widened};

/// Ops that are not here have their reference alone.
const std::map<std::string_view, List>& lists() {
  static const auto* all = new std::map<std::string_view, List>{
      {"matmul",
       {kZero,
        {"small", small_matmul},
        {"onednn", dnnl_matmul},
        {"own", own_matmul},
        {"plain", plain_matmul},
        kWidened,
        kReference}},
      {"conv2d", {kZero, {"small", small_conv2d}, {"onednn", dnnl_conv}, kWidened, kReference}},
      {"conv2d_grad_input",
       {kZero, {"small", small_conv2d_grad_input}, {"onednn", dnnl_conv_grad_input}, kWidened, kReference}},
      {"conv2d_grad_weight",
       {kZero, {"small", small_conv2d_grad_weight}, {"onednn", dnnl_conv_grad_weight}, kWidened, kReference}},
      {"conv3d", {kZero, {"onednn", dnnl_conv}, kWidened, kReference}},
      {"conv3d_grad_input", {kZero, {"onednn", dnnl_conv_grad_input}, kWidened, kReference}},
      {"conv3d_grad_weight", {kZero, {"onednn", dnnl_conv_grad_weight}, kWidened, kReference}},
      {"max_pool2d", {{"direct", max_pool2d}, kWidened, kReference}},
      {"max_pool2d_grad", {{"direct", max_pool2d_grad}, kWidened, kReference}},
      {"avg_pool2d", {{"direct", avg_pool2d}, kWidened, kReference}},
      {"avg_pool2d_grad", {{"direct", avg_pool2d_grad}, kWidened, kReference}},
      {"concat", {{"copy", concat}, kReference}},
      {"pad", {{"copy", pad}, kReference}},
      {"slice", {{"copy", slice}, kReference}},
      {"transpose", {{"copy", transpose}, kReference}},
      {"broadcast_to", {{"copy", broadcast_to}, kReference}},
      {"gather", {{"direct", gather}, kReference}},
      {"scatter_add", {{"direct", scatter_add}, kReference}},
      {"scatter", {{"direct", scatter}, kReference}},
      {"slice_update", {{"copy", slice_update}, kReference}},
      {"cumsum", {{"lines", cumsum}, kReference}},
      {"cumprod", {{"lines", cumprod}, kReference}},
      {"cummax", {{"lines", cummax}, kReference}},
      {"cummin", {{"lines", cummin}, kReference}},
      {"sort", {{"keys", sort}, kReference}},
      {"argmax", {{"direct", argmax}, kReference}},
      {"argmin", {{"direct", argmin}, kReference}},
      {"check_index", {{"direct", check_index}, kReference}},
  };
  return *all;
}

bool verbose() {
  static const bool v = [] {
    const char* env = std::getenv("UNDERTOW_VERBOSE");
    return env && std::string_view(env).find("dispatch") != std::string_view::npos;
  }();
  return v;
}

std::string signature(const NodeView& node) {
  std::string s = node.op->name + "(";
  const auto add = [&s](const ir::TensorType& t) { s += fmt::format("{}{}", name_of(t.dtype), t.shape.str()); };
  for (std::size_t i = 0; i < node.in.size(); ++i) s += i ? ", " : "", add(node.in[i]);
  s += ")";
  for (const auto& t : node.out) s += " -> ", add(t);
  return s;
}

}  // namespace

std::unique_ptr<Kernel> choose_kernel(const NodeView& node) {
  static const List only_reference{kReference};
  const auto it = lists().find(node.op->name);
  const List& list = it == lists().end() ? only_reference : it->second;
  std::string why;
  for (const Candidate& c : list) {
    Choice choice = c.make(node);
    if (choice.kernel) {
      if (verbose())
        std::fprintf(stderr, "dispatch: %s: %s%s\n", signature(node).c_str(), choice.kernel->description().c_str(),
                     why.c_str());
      return std::move(choice.kernel);
    }
    why += fmt::format("; not {}: {}", c.name, choice.declined);
  }
  throw DeviceError(fmt::format("the CPU has no kernel for {}{}", signature(node), why));
}

}  // namespace undertow::backend::cpu
