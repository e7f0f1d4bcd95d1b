// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/host/control.h"

#include <cstring>
#include <deque>

#include "undertow/base/check.h"

namespace undertow::backend {
namespace {

thread_local const std::atomic<bool>* stop_flag = nullptr;

using Pointers = std::vector<std::byte*>;

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// A body with all its pointers resolved.
class BoundBody {
 public:
  BoundBody() = default;
  BoundBody(const RegionBody& body, const Pointers& arguments, std::byte* arena) {
    const auto at = [&](const RegionBody::Address& a) {
      return a.kind == RegionBody::Address::kArgument ? arguments[a.index] : arena + a.offset;
    };
    std::vector<void*> args;
    for (const auto& c : body.calls) {
      args.clear();
      for (const auto& a : c.args) args.push_back(at(a));
      calls_.push_back({c.kernel->bind(args), c.node});
    }
    for (const auto& c : body.copies) copies_.push_back({at(c.to), at(c.from), c.bytes});
    for (const auto& o : body.outputs) outputs_.push_back(at(o));
  }

  /// False: a kernel failed.
  bool run(ir::StepError* error) const {
    for (const Call& c : calls_) {
      c.instr.run(c.instr.context, error);
      if (error->code == ir::StepError::kNone) continue;
      if (c.node >= 0) error->node = c.node;
      return false;
    }
    for (const Copy& c : copies_) std::memcpy(c.to, c.from, c.bytes);
    return true;
  }
  std::byte* output(std::size_t i) const { return outputs_[i]; }

 private:
  struct Call {
    Instr instr;
    std::int32_t node;
  };
  struct Copy {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
  };
  std::vector<Call> calls_;
  std::vector<Copy> copies_;
  Pointers outputs_;
};

/// What the three have in common: owning bodies, and memory for them in the scratch, one after the other.
template <typename Bound>
class ControlKernel : public Kernel {
 public:
  ControlKernel(const ir::Node& node, std::vector<RegionBody> bodies)
      : name_(node.op->name), num_inputs_(node.inputs.size()), bodies_(std::move(bodies)) {
    for (const auto& b : bodies_) {
      offsets_.push_back(scratch_);
      scratch_ += aligned(b.arena_bytes);
    }
  }
  std::size_t scratch_bytes() const override { return scratch_; }
  std::string description() const override { return "host:" + name_; }

  Instr bind(std::span<void* const> args) override {
    Pointers p;
    for (void* a : args) p.push_back(static_cast<std::byte*>(a));
    bound_.push_back(make(p));
    return {[](void* context, ir::StepError* error) {
              // After an earlier error the inputs may be garbage.
              if (error->code == ir::StepError::kNone) static_cast<const Bound*>(context)->run(error);
            },
            &bound_.back()};
  }
  void unbind() override {
    bound_.clear();
    for (auto& b : bodies_)
      for (auto& c : b.calls) c.kernel->unbind();
  }

 protected:
  /// `args`: inputs, outputs, scratch.
  virtual Bound make(const Pointers& args) = 0;
  BoundBody body(std::size_t i, const Pointers& arguments, std::byte* scratch) const {
    return BoundBody(bodies_[i], arguments, scratch + offsets_[i]);
  }

  std::string name_;
  std::size_t num_inputs_;
  std::vector<RegionBody> bodies_;
  std::vector<std::size_t> offsets_;
  std::size_t scratch_ = 0;

 private:
  std::deque<Bound> bound_;
};

struct BoundCond {
  const std::byte* predicate;
  BoundBody then, otherwise;
  void run(ir::StepError* error) const { (*reinterpret_cast<const bool*>(predicate) ? then : otherwise).run(error); }
};

class CondKernel final : public ControlKernel<BoundCond> {
 public:
  using ControlKernel::ControlKernel;

 private:
  BoundCond make(const Pointers& args) override {
    const Pointers arguments(args.begin() + 1, args.end() - 1);
    return {args[0], body(0, arguments, args.back()), body(1, arguments, args.back())};
  }
};

/// One element of a memcpy that each trip does, with its place in the sequence.
struct Move {
  std::byte *to, *from;
  std::size_t bytes;
};

struct BoundWhile {
  std::vector<Move> init;  // carries
  BoundBody condition, step;
  void run(ir::StepError* error) const {
    for (const Move& m : init) std::memcpy(m.to, m.from, m.bytes);
    while (condition.run(error) && *reinterpret_cast<const bool*>(condition.output(0))) {
      if (!step.run(error)) return;
      if (stop_flag && stop_flag->load(std::memory_order_relaxed)) {
        error->code = ir::StepError::kStopped;
        return;
      }
    }
  }
};

class WhileKernel final : public ControlKernel<BoundWhile> {
 public:
  WhileKernel(const ir::Node& node, std::vector<RegionBody> bodies)
      : ControlKernel(node, std::move(bodies)), consts_(static_cast<std::size_t>(node.attrs.integer("consts"))) {}

 private:
  BoundWhile make(const Pointers& args) override {
    BoundWhile b;
    Pointers arguments(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(consts_));
    for (std::size_t c = 0; consts_ + c < num_inputs_; ++c) {
      std::byte* carry = args[num_inputs_ + c];
      arguments.push_back(carry);
      if (const auto n = bodies_[1].input_bytes[consts_ + c]) b.init.push_back({carry, args[consts_ + c], n});
    }
    b.condition = body(0, arguments, args.back());
    b.step = body(1, arguments, args.back());
    return b;
  }
  std::size_t consts_;
};

struct BoundScan {
  std::vector<Move> init, load, before, store;  // but for init: one side advances by its bytes with each row
  BoundBody step;
  std::int64_t length;
  bool reverse;
  void run(ir::StepError* error) const {
    for (const Move& m : init) std::memcpy(m.to, m.from, m.bytes);
    for (std::int64_t trip = 0; trip < length; ++trip) {
      const auto row = static_cast<std::size_t>(reverse ? length - 1 - trip : trip);
      for (const Move& m : load) std::memcpy(m.to, m.from + row * m.bytes, m.bytes);
      for (const Move& m : before) std::memcpy(m.to + row * m.bytes, m.from, m.bytes);
      if (!step.run(error)) return;
      for (const Move& m : store) std::memcpy(m.to + row * m.bytes, m.from, m.bytes);
    }
  }
};

class ScanKernel final : public ControlKernel<BoundScan> {
 public:
  ScanKernel(const ir::Node& node, std::vector<RegionBody> bodies)
      : ControlKernel(node, std::move(bodies)),
        consts_(static_cast<std::size_t>(node.attrs.integer("consts"))),
        carries_(static_cast<std::size_t>(node.attrs.integer("carries"))),
        length_(node.attrs.integer("length")),
        reverse_(node.attrs.flag("reverse")) {
    for (std::size_t x = consts_ + carries_; x < num_inputs_; ++x) {
      elements_.push_back(scratch_);
      scratch_ += aligned(bodies_[0].input_bytes[x]);
    }
  }

 private:
  BoundScan make(const Pointers& args) override {
    BoundScan b;
    b.length = length_;
    b.reverse = reverse_;
    const RegionBody& r = bodies_[0];
    Pointers arguments(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(consts_));
    for (std::size_t c = 0; c < carries_; ++c) {
      std::byte* carry = args[num_inputs_ + c];
      arguments.push_back(carry);
      if (const auto n = r.input_bytes[consts_ + c]) b.init.push_back({carry, args[consts_ + c], n});
    }
    for (std::size_t x = 0; x < elements_.size(); ++x) {
      const std::size_t input = consts_ + carries_ + x;
      std::byte* element = args.back() + elements_[x];
      arguments.push_back(element);
      if (const auto n = r.input_bytes[input]) b.load.push_back({element, args[input], n});
    }
    b.step = body(0, arguments, args.back());
    for (std::size_t y = carries_; y < r.outputs.size(); ++y)
      if (const auto n = r.output_bytes[y])
        (r.before[y] ? b.before : b.store).push_back({args[num_inputs_ + y], b.step.output(y), n});
    return b;
  }
  std::size_t consts_, carries_;
  std::int64_t length_;
  bool reverse_;
  std::vector<std::size_t> elements_;  // in the scratch
};

}  // namespace

std::unique_ptr<Kernel> host_control(const ir::Node& node, std::vector<RegionBody> bodies) {
  UNDERTOW_ASSERT(static_cast<int>(bodies.size()) == node.op->num_regions);
  if (node.op->name == "cond") return std::make_unique<CondKernel>(node, std::move(bodies));
  if (node.op->name == "while") return std::make_unique<WhileKernel>(node, std::move(bodies));
  if (node.op->name == "scan") return std::make_unique<ScanKernel>(node, std::move(bodies));
  throw DeviceError(fmt::format("the host has no control flow for operator '{}'", node.op->name));
}

void set_stop_flag(const std::atomic<bool>* stop) { stop_flag = stop; }

}  // namespace undertow::backend
