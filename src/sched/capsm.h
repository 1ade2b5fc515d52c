// The unit of every amount of GPU capacity in this program (docs/glossary.md).
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace gpuctl::sched {

/// Capacity of `count` SMs: as many workers of a kernel as that many SMs hold. Never negative: a - b needs a >= b.
struct CapSM {
  std::uint32_t count = 0;

  constexpr auto operator<=>(const CapSM&) const = default;
  constexpr CapSM& operator+=(CapSM other) { return count += other.count, *this; }
  constexpr CapSM& operator-=(CapSM other) { return count -= other.count, *this; }
};

constexpr CapSM operator+(CapSM a, CapSM b) {
  return CapSM{a.count + b.count};
}
constexpr CapSM operator-(CapSM a, CapSM b) {
  return CapSM{a.count - b.count};
}

/// "No limit": more than any GPU has, and small enough that the sum of a hundred of them fits 32 bits.
inline constexpr CapSM kUnlimitedCapSM{0x00ffffff};

}  // namespace gpuctl::sched
