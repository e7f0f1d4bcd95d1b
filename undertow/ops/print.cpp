// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/print.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <iostream>
#include <mutex>

#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/register.h"
#include "undertow/tensor/text.h"

namespace undertow::ops {
namespace {

/// Records as bytes between the compute thread and the one that waits. Two buffers change places, so that a steady
/// state allocates nothing.
class Queue {
 public:
  void push(const std::string& format, bool flush, std::span<const ir::HostArray> values) {
    std::size_t bytes = sizeof(Head) + format.size();
    for (const auto& v : values) bytes += sizeof(ValueHead) + bytes_of(v);
    std::unique_lock lock(mutex_);
    space_.wait(lock, [&] { return filling_.empty() || filling_.size() + bytes <= kCapacity; });
    filling_.reserve(std::max(kCapacity, bytes));
    put(Head{format.size(), values.size(), flush});
    append(format.data(), format.size());
    for (const auto& v : values) {
      ValueHead head{v.dtype, v.shape.rank(), {}};
      for (int d = 0; d < v.shape.rank(); ++d) head.shape[d] = v.shape[d];
      put(head);
      append(v.data, bytes_of(v));
    }
    pending_.store(true, std::memory_order_release);
  }

  template <typename F>
  void drain(F write) {
    if (!pending_.load(std::memory_order_acquire)) return;
    const std::lock_guard one_reader(reading_);
    {
      const std::lock_guard lock(mutex_);
      std::swap(filling_, draining_);
      filling_.clear();
      pending_.store(false, std::memory_order_relaxed);
    }
    space_.notify_all();
    std::exception_ptr error;
    const std::byte* at = draining_.data();
    const std::byte* const end = at + draining_.size();
    while (at < end) {
      PrintRecord record;
      const auto head = get<Head>(at);
      record.format.assign(reinterpret_cast<const char*>(at), head.format);
      record.flush = head.flush;
      at += head.format;
      for (std::size_t i = 0; i < head.values; ++i) {
        const auto v = get<ValueHead>(at);
        Shape shape;
        for (int d = 0; d < v.rank; ++d) shape.push_back(v.shape[d]);
        Tensor& t = record.values.emplace_back(v.dtype, shape);
        if (t.nbytes()) std::memcpy(t.data(), at, t.nbytes());
        at += t.nbytes();
      }
      try {
        write(record);
      } catch (...) {  // the others are written all the same
        if (!error) error = std::current_exception();
      }
    }
    draining_.clear();
    if (error) std::rethrow_exception(error);
  }

 private:
  static constexpr std::size_t kCapacity = std::size_t{4} << 20;
  struct Head {
    std::size_t format, values;
    bool flush;
  };
  struct ValueHead {
    DType dtype;
    int rank;
    std::int64_t shape[Shape::kMaxRank];
  };
  static std::size_t bytes_of(const ir::HostArray& v) {
    return static_cast<std::size_t>(v.shape.numel()) * size_of(v.dtype);
  }
  template <typename T>
  void put(const T& v) {
    append(&v, sizeof v);
  }
  void append(const void* data, std::size_t bytes) {
    const auto* p = static_cast<const std::byte*>(data);
    filling_.insert(filling_.end(), p, p + bytes);
  }
  template <typename T>
  static T get(const std::byte*& at) {
    T v;
    std::memcpy(&v, at, sizeof v);
    at += sizeof v;
    return v;
  }

  std::mutex mutex_, reading_;
  std::condition_variable space_;
  std::vector<std::byte> filling_, draining_;
  std::atomic<bool> pending_{false};
};

Queue& queue() {
  static auto* q = new Queue;  // the compute thread outlives what is destroyed at exit
  return *q;
}

void write_out(const PrintRecord& record) {
  std::cout << print_text(record, &text_of);
  if (record.flush) std::cout.flush();
}
std::atomic<void (*)(const PrintRecord&)> writer{&write_out};

void append_escaped(std::string& format, const std::string& text) {
  for (const char c : text) {
    if (c == '{' || c == '}') format += c;
    format += c;
  }
}

}  // namespace

void print_(const std::vector<Printed>& items) { print_(items, "\n", "\n"); }

void print_(const std::vector<Printed>& items, const std::string& separator, const std::string& end, bool flush) {
  PrintRecord record;
  record.flush = flush;
  bool first = true;
  for (const auto& i : items) {
    if (!first) append_escaped(record.format, separator);
    first = false;
    if (i.tensor.defined()) {
      record.format += "{}";
      record.values.push_back(i.tensor);
    } else {
      append_escaped(record.format, i.text);
    }
  }
  append_escaped(record.format, end);
  if (!dispatcher().compiling()) {
    writer.load()(record);
    return;
  }
  register_all();
  apply(ir::op_set().get("print"), record.values, {{"format", record.format}, {"flush", flush}});
}

void set_print_writer(void (*f)(const PrintRecord&)) { writer.store(f); }

std::string print_text(const PrintRecord& record, std::string (*value_text)(const Tensor&)) {
  std::string out;
  std::size_t value = 0;
  const std::string& f = record.format;
  for (std::size_t i = 0; i < f.size(); ++i) {
    if (f[i] == '{' && i + 1 < f.size() && f[i + 1] == '}') out += value_text(record.values.at(value++)), ++i;
    else if ((f[i] == '{' || f[i] == '}') && i + 1 < f.size() && f[i + 1] == f[i]) out += f[i++];
    else out += f[i];
  }
  return out;
}

void drain_prints() { queue().drain(writer.load()); }

void register_print(ir::OpSet& set) {
  ir::OpDef op;
  op.name = "print";
  op.num_inputs = -1;
  op.doc = "shows its inputs, put into a text, when the step runs";
  op.effect = op.ordered = true;
  op.defaults = {{"flush", false}};
  op.infer = [](std::span<const ir::TensorType>, const ir::Attrs&) { return std::vector<ir::TensorType>{}; };
  op.reference = [](std::span<const ir::HostArray> in, std::span<const ir::HostArray>, const ir::Attrs& attrs,
                    ir::StepError*) { queue().push(attrs.text("format"), attrs.flag("flush"), in); };
  set.add(std::move(op));
}

}  // namespace undertow::ops
