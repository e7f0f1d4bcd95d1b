// SPDX-License-Identifier: Apache-2.0
// base/philox.h: Philox4x32-10, the counter-based generator behind every random draw.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A draw depends on its key
// and counter only, so it does not depend on threads, workers or order of execution.
#pragma once

#include <array>
#include <cstdint>

namespace undertow {

using PhiloxBlock = std::array<std::uint32_t, 4>;

inline constexpr std::uint32_t kPhiloxM0 = 0xD2511F53u, kPhiloxM1 = 0xCD9E8D57u;
inline constexpr std::uint32_t kPhiloxW0 = 0x9E3779B9u, kPhiloxW1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;

constexpr PhiloxBlock philox(PhiloxBlock c, std::uint32_t k0, std::uint32_t k1) {
  for (int i = 0; i < kPhiloxRounds; ++i) {
    const std::uint64_t p0 = std::uint64_t{kPhiloxM0} * c[0], p1 = std::uint64_t{kPhiloxM1} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
  return c;
}

/// Uniform in [0, 1) with 24 bits.
constexpr float uniform_from_bits(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/// One uniform float32 in [0, 1) for element `index` of step `step`: what ir::Opcode::kRandom computes on every device.
constexpr float random_uniform(std::uint64_t seed, std::uint64_t step, std::uint64_t index, std::uint32_t stream) {
  return uniform_from_bits(philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                                   static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32)},
                                  static_cast<std::uint32_t>(seed),
                                  static_cast<std::uint32_t>(seed >> 32) ^ stream)[0]);
}

/// A stream of draws for sequential use (shuffles, initializers): key = (seed), counter = (stream, position).
class PhiloxStream {
 public:
  PhiloxStream(std::uint64_t seed, std::uint64_t stream)
      : k0_(static_cast<std::uint32_t>(seed)), k1_(static_cast<std::uint32_t>(seed >> 32)), stream_(stream) {}

  std::uint32_t next() {
    if (used_ == 4) {
      block_ = philox({static_cast<std::uint32_t>(position_), static_cast<std::uint32_t>(position_ >> 32),
                       static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                      k0_, k1_);
      ++position_;
      used_ = 0;
    }
    return block_[used_++];
  }
  std::uint64_t next64() { return (std::uint64_t{next()} << 32) | next(); }
  /// Uniform in [0, 1).
  float uniform() { return uniform_from_bits(next()); }
  /// Uniform in [0, 1) with 53 bits.
  double uniform64() { return static_cast<double>(next64() >> 11) * 0x1p-53; }
  /// Uniform in [0, n), without modulo bias (Lemire 2019). n must be positive.
  std::uint64_t below(std::uint64_t n) {
    if (n <= UINT32_MAX) {
      const auto bound = static_cast<std::uint32_t>(n);
      std::uint64_t m = std::uint64_t{next()} * bound;
      if (static_cast<std::uint32_t>(m) < bound) {
        const std::uint32_t threshold = (0u - bound) % bound;
        while (static_cast<std::uint32_t>(m) < threshold) m = std::uint64_t{next()} * bound;
      }
      return m >> 32;
    }
    const std::uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    std::uint64_t v = next64();
    while (v >= limit) v = next64();
    return v % n;
  }

 private:
  std::uint32_t k0_, k1_;
  std::uint64_t stream_, position_ = 0;
  PhiloxBlock block_{};
  int used_ = 4;
};

}  // namespace undertow
