// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/sink.h"

#include <algorithm>

#include "undertow/runtime/trace.h"

namespace undertow::train {
namespace {

/// The global seed is the default of shuffles and random operations too.
[[maybe_unused]] const bool data_follows_seed =
    (runtime::on_set_seed([](std::uint64_t seed) { data::config().seed = seed; }), true);

std::vector<runtime::ColumnType> as_types(std::span<const data::ColumnSpec> specs) {
  std::vector<runtime::ColumnType> types;
  for (const data::ColumnSpec& s : specs) {
    if (s.text)
      throw TypeError("column '" + s.name +
                      "' holds texts, which a network cannot take; leave it out with project(), or map it to numbers");
    types.push_back({s.name, s.dtype, s.shape});
  }
  return types;
}

}  // namespace

ChannelSink::ChannelSink(const std::vector<data::ColumnSpec>& specs) : channel_(as_types(specs)) {}

const std::vector<runtime::ColumnType>& ChannelSink::types_for(std::span<const data::ColumnSpec> specs) {
  for (const Known& k : known_)
    if (std::equal(k.specs.begin(), k.specs.end(), specs.begin(), specs.end())) return k.types;
  constexpr std::size_t kMost = 16;  // ragged data: every batch may be new
  if (known_.size() == kMost) known_.erase(known_.begin());
  return known_.emplace_back(Known{{specs.begin(), specs.end()}, as_types(specs)}).types;
}

std::size_t ChannelSink::acquire(std::int64_t sequence, std::span<const data::ColumnSpec> specs,
                                 std::span<data::BatchTarget> out) {
  const std::vector<runtime::ColumnType>& types = types_for(specs);
  std::size_t n = 0;
  try {
    while (n < out.size()) {
      const std::int64_t next = sequence + static_cast<std::int64_t>(n);
      // Only the first may wait: those after it are behind what was handed out already.
      if (n > 0 && channel_.slot(static_cast<int>(next % channel_.num_slots())).free_for.load() != next) break;
      runtime::ChannelSlot* slot = channel_.acquire(next, types);
      out[n++] = {slot->columns, slot};
    }
  } catch (const runtime::Channel::Stopped&) {
    throw data::Stopped();
  }
  return n;
}

data::BatchTarget ChannelSink::resize(std::int64_t sequence, void*, std::span<const data::ColumnSpec> specs) {
  try {
    runtime::ChannelSlot* slot = channel_.acquire(sequence, as_types(specs));  // still ours: gives other memory
    return {slot->columns, slot};
  } catch (const runtime::Channel::Stopped&) {
    throw data::Stopped();
  }
}

void ChannelSink::publish(std::int64_t, std::span<void* const> tokens, bool last_of_epoch) {
  for (void* const token : tokens) {
    auto* slot = static_cast<runtime::ChannelSlot*>(token);
    slot->last_of_epoch = last_of_epoch && token == tokens.back();
    channel_.publish(slot);
  }
}

void ChannelSink::fail(std::int64_t sequence, std::exception_ptr error) { channel_.fail(sequence, std::move(error)); }
void ChannelSink::end(std::int64_t total) { channel_.end(total); }
void ChannelSink::cancel() { channel_.close(); }

std::int64_t ChannelSink::taken() {
  // A slot is free for the batch that comes one round after the one taken from it.
  std::int64_t least = INT64_MAX;
  for (int i = 0; i < channel_.num_slots(); ++i) least = std::min(least, channel_.slot(i).free_for.load());
  return least;
}

Feed::Feed(const data::Dataset& dataset, const data::PipelineOptions& options, std::int64_t size)
    : first_epoch_(options.first_epoch),
      first_batch_(options.first_batch),
      size_(size),
      pipeline_(dataset, options),
      sink_(pipeline_.specs()) {
  pipeline_.start(sink_);
}
void Feed::reached(std::int64_t steps, double wait_seconds) {
  if (size_ <= 0) return;
  const std::int64_t batch = first_batch_ + steps;
  pipeline_.reached(first_epoch_ + batch / size_, batch % size_, wait_seconds);
}
Feed::~Feed() { pipeline_.stop(); }

}  // namespace undertow::train
