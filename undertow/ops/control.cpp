// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/control.h"

#include <algorithm>

#include "undertow/base/check.h"
#include "undertow/ops/control_record.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/register.h"

namespace undertow::ops {

using namespace detail;
using Types = std::vector<ir::TensorType>;

namespace {

/// A function that runs at once.
class Running {
 public:
  Running(std::uint64_t key, int which, std::int64_t trip = -1) { dispatcher().enter(key, which, trip); }
  ~Running() { dispatcher().leave(); }
  Running(const Running&) = delete;
};

}  // namespace

Tensors cond(const Tensor& pred, const Branch& then_fn, const Branch& else_fn, const Tensors& operands) {
  check_defined(operands, "ops.cond: operand");
  const Tensor p = predicate(pred, "ops.cond: pred");
  const std::uint64_t key = dispatcher().control_key();
  if (dispatcher().compiling()) return record_cond(key, p, then_fn, else_fn, operands);
  const bool chosen = p.item<bool>();
  const Running running(key, chosen ? 0 : 1);
  return (chosen ? then_fn : else_fn)(operands);
}

Tensors while_loop(const std::function<Tensor(const Tensors&)>& cond_fn, const Branch& body_fn, const Tensors& init,
                   const LoopOptions& options) {
  check_defined(init, "ops.while_loop: initial value");
  const std::uint64_t key = dispatcher().control_key();
  if (dispatcher().compiling()) return record_while(key, cond_fn, body_fn, init, options);
  Tensors carry = init;
  for (std::int64_t trip = 0;; ++trip) {
    {
      const Running running(key, 0, trip);
      if (!predicate(cond_fn(carry), "ops.while_loop: the condition").item<bool>()) return carry;
    }
    const Running running(key, 1, trip);
    Tensors next = body_fn(carry);
    check_defined(next, "ops.while_loop: result");
    check_carry("while_loop", carry, types_of(next), options);
    carry = std::move(next);
  }
}

namespace {

Tensor row(const Tensor& x, std::int64_t i) {
  Index at{};
  at.kind = Index::kInteger;
  at.value = i;
  return index(x, {at});
}

/// One trip after the other, in the trace around or at once.
ScanResult run_scan(std::uint64_t key, const ScanBody& body, const Tensors& init, const Tensors& xs,
                    const ScanOptions& options) {
  ScanResult result{init, {}};
  std::vector<Tensors> rows(static_cast<std::size_t>(options.length));
  for (std::int64_t k = 0; k < options.length; ++k) {
    const std::int64_t i = options.reverse ? options.length - 1 - k : k;
    const Running running(key, 0, i);
    Tensors x;
    for (const auto& t : xs) x.push_back(row(t, i));
    ScanResult r = body(result.carry, x);
    check_defined(r.carry, "ops.scan: carry");
    check_defined(r.ys, "ops.scan: result");
    check_carry("scan", result.carry, types_of(r.carry), options);
    result.carry = std::move(r.carry);
    rows[static_cast<std::size_t>(i)] = std::move(r.ys);
  }
  if (rows.empty()) {
    Types types = types_of(init);
    for (const auto& t : xs) types.push_back(row_of({t.dtype(), t.shape()}));
    const auto ys = [&](const Tensors& args) {
      const auto first_x = args.begin() + static_cast<std::ptrdiff_t>(init.size());
      return body({args.begin(), first_x}, {first_x, args.end()}).ys;
    };
    for (const auto& t : dispatcher().abstract(types, ys)) {
      const ir::TensorType none = rows_of(t, 0);
      result.ys.push_back(full(none.shape, 0, none.dtype));
    }
    return result;
  }
  for (std::size_t y = 0; y < rows[0].size(); ++y) {
    Tensors all;
    for (const auto& r : rows) all.push_back(r.at(y));
    result.ys.push_back(stack(all, 0));
  }
  return result;
}

}  // namespace

ScanResult scan(const ScanBody& body, const Tensors& init, const Tensors& xs, const ScanOptions& given) {
  check_defined(init, "ops.scan: initial value");
  check_defined(xs, "ops.scan: xs");
  ScanOptions options = given;
  for (const auto& x : xs) {
    UNDERTOW_CHECK(x.ndim() > 0, ShapeError, "ops.scan: xs has no rows: its shape is (){}", place());
    if (options.length < 0) options.length = x.shape(0);
    UNDERTOW_CHECK(x.shape(0) == options.length, ShapeError, "ops.scan: xs has {} rows (shape {}), expected {}{}",
                   x.shape(0), x.shape().str(), options.length, place());
  }
  UNDERTOW_CHECK(options.length >= 0, ValueError, "ops.scan: without xs, length must be given and not be negative{}",
                 place());
  const std::uint64_t key = dispatcher().control_key();
  if (!dispatcher().compiling() || options.unroll) return run_scan(key, body, init, xs, options);
  return record_scan(key, body, init, {types_of(xs), [&](std::size_t i) { return xs[i]; }}, options);
}

Tensors fori_loop(std::int64_t lower, std::int64_t upper, const IndexedBody& body, const Tensors& init,
                  const ScanOptions& given) {
  ScanOptions options = given;
  options.length = std::max<std::int64_t>(upper - lower, 0);
  const auto step = [&](const Tensors& carry, const Tensors& x) { return ScanResult{body(x[0], carry), {}}; };
  return scan(step, init, {add(arange(options.length), lower)}, options).carry;
}

Tensors fori_loop(const Tensor& lower, const Tensor& upper, const IndexedBody& body, const Tensors& init,
                  const LoopOptions& given) {
  for (const auto* bound : {&lower, &upper})
    UNDERTOW_CHECK(bound->size() == 1 && is_integral(bound->dtype()), TypeError,
                   "ops.fori_loop: a bound must be one integer, got {} of shape {}{}", name_of(bound->dtype()),
                   bound->shape().str(), place());
  const auto scalar = [](const Tensor& t) { return reshape(cast(t, DType::kInt64), {}); };
  const Tensor end = scalar(upper);
  Tensors carry{scalar(lower)};
  carry.insert(carry.end(), init.begin(), init.end());
  LoopOptions options = given;
  options.weak.insert(options.weak.begin(), false);
  const auto rest = [](const Tensors& all) { return Tensors(all.begin() + 1, all.end()); };
  const auto step = [&](const Tensors& all) {
    Tensors next = body(all[0], rest(all));
    next.insert(next.begin(), add(all[0], std::int64_t{1}));
    return next;
  };
  return rest(while_loop([&](const Tensors& all) { return less(all[0], end); }, step, carry, options));
}

// ---- the operators

namespace {

void expect(const Types& got, const Types& expected, const char* what) {
  UNDERTOW_CHECK(got == expected, TypeError, "{}: {} where {} are expected", what, text(got), text(expected));
}
Types part(std::span<const ir::TensorType> types, std::size_t begin, std::size_t end) {
  UNDERTOW_CHECK(begin <= end && end <= types.size(), TypeError, "{} types, at least {} are expected", types.size(),
                 std::max(begin, end));
  return {types.begin() + static_cast<std::ptrdiff_t>(begin), types.begin() + static_cast<std::ptrdiff_t>(end)};
}
std::size_t count(const ir::Attrs& attrs, const char* name) {
  const std::int64_t n = attrs.integer(name);
  UNDERTOW_CHECK(n >= 0, ValueError, "{} is {}", name, n);
  return static_cast<std::size_t>(n);
}
const ir::TensorType kTruth{DType::kBool, {}};

using In = std::span<const ir::TensorType>;
using Regions = std::span<const ir::RegionPtr>;

Types infer_cond(In in, const ir::Attrs&, Regions r) {
  expect(part(in, 0, 1), {kTruth}, "the predicate");
  for (const auto& region : r) expect(ir::input_types(*region), part(in, 1, in.size()), "inputs of a region");
  Types out = ir::output_types(*r[0]);
  expect(ir::output_types(*r[1]), out, "outputs of the second region");
  return out;
}

Types infer_while(In in, const ir::Attrs& attrs, Regions r) {
  for (const auto& region : r) expect(ir::input_types(*region), part(in, 0, in.size()), "inputs of a region");
  expect(ir::output_types(*r[0]), {kTruth}, "outputs of the condition");
  Types carry = part(in, count(attrs, "consts"), in.size());
  expect(ir::output_types(*r[1]), carry, "outputs of the body");
  return carry;
}

Types infer_scan(In in, const ir::Attrs& attrs, Regions r) {
  const std::size_t consts = count(attrs, "consts"), carries = count(attrs, "carries");
  const auto length = static_cast<std::int64_t>(count(attrs, "length"));
  (void)attrs.flag("reverse");
  Types given = part(in, 0, consts + carries);
  for (const auto& x : part(in, consts + carries, in.size())) {
    UNDERTOW_CHECK(x.shape.rank() > 0 && x.shape[0] == length, ShapeError, "{} has not {} rows", text({x}), length);
    given.push_back(row_of(x));
  }
  expect(ir::input_types(*r[0]), given, "inputs of the region");
  const Types out = ir::output_types(*r[0]);
  Types result = part(in, consts, consts + carries);
  expect(part(out, 0, carries), result, "carries of the region");
  for (const auto& y : part(out, carries, out.size())) result.push_back(rows_of(y, length));
  return result;
}

}  // namespace

void register_control(ir::OpSet& set) {
  const auto add_op = [&set](const char* name, int regions, const char* doc, decltype(ir::OpDef::infer_regions) infer,
                             decltype(ir::OpDef::grad) grad) {
    ir::OpDef op;
    op.name = name;
    op.num_inputs = -1;
    op.num_regions = regions;
    op.doc = doc;
    op.infer = [](In, const ir::Attrs&) -> Types { throw TypeError("its regions are missing"); };
    op.infer_regions = std::move(infer);
    op.grad = std::move(grad);
    set.add(std::move(op));
  };
  add_op("cond", 2, "one of two regions, by a predicate", infer_cond, cond_grad);
  add_op("while", 2, "a region again and again while another one gives true", infer_while, while_grad);
  add_op("scan", 1, "a region once for each row", infer_scan, scan_grad);
}

}  // namespace undertow::ops
