// SPDX-License-Identifier: Apache-2.0
// base/hash.h: a 128-bit running hash for structural keys (graphs, kernels). Not cryptographic.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace undertow {

struct Digest {
  std::uint64_t a = 0, b = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
  std::string hex() const;
};
struct DigestHash {
  std::size_t operator()(const Digest& d) const {
    return static_cast<std::size_t>(d.a ^ (d.b * 0x9E3779B97F4A7C15ull));
  }
};

class Hasher {
 public:
  Hasher& word(std::uint64_t v) {
    a_ = mix(a_ ^ v) + 0x9E3779B97F4A7C15ull;
    b_ = mix(b_ + v * 0xD6E8FEB86659FD93ull) ^ a_;
    return *this;
  }
  template <typename T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  Hasher& add(T v) {
    return word(static_cast<std::uint64_t>(v));
  }
  Hasher& add(double v) {
    std::uint64_t u;
    std::memcpy(&u, &v, sizeof u);
    return word(u);
  }
  Hasher& add(std::string_view s) {
    word(s.size());
    std::uint64_t u = 0;
    for (std::size_t i = 0; i < s.size(); i += 8, u = 0) {
      std::memcpy(&u, s.data() + i, s.size() - i < 8 ? s.size() - i : 8);
      word(u);
    }
    return *this;
  }
  template <typename Range>
  Hasher& add_range(const Range& r) {
    word(static_cast<std::uint64_t>(r.size()));
    for (const auto& v : r) add(v);
    return *this;
  }
  Digest digest() const { return {a_, b_}; }

 private:
  static std::uint64_t mix(std::uint64_t x) {  // SplitMix64's finalizer
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9ull;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }
  std::uint64_t a_ = 0x243F6A8885A308D3ull, b_ = 0x13198A2E03707344ull;
};

inline std::string Digest::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string s;
  for (const std::uint64_t w : {a, b})
    for (int i = 60; i >= 0; i -= 4) s += kDigits[(w >> i) & 15];
  return s;
}

}  // namespace undertow
