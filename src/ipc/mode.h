// How the kernels of a client run on a device. The daemon decides it, once for each decision (gpuctld/grants), from
// what is in force, the device and what the program is. It stands in the stub page (Grant::flags), where the library
// switches on it; `gpuctl explain`, `gpuctl top` and JSON show its name. docs/architecture.md has a sentence for each.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gpuctl::ipc {

enum class Mode : std::uint32_t {
  /// Kernels that can be rewritten run as workers on the client's SMs and give these back between two blocks; the
  /// others
  /// start there, and end there. The grant may shrink at any time. Also before the first decision.
  workers,
  /// Nothing is in force: launches go to the driver as they came.
  free,
  /// Programs take turns on the whole GPU, and something is in force for this one: as `workers`, but no other program
  /// wants SMs back, and the driver ends what an ended process left there.
  turns,
  /// The client's SMs are its own, and nobody can take them away: kernels keep their original form, and are confined.
  part,
  /// The same, on SMs that clients have in common: Stub::guaranteed_sms from Grant::first on.
  common,
  /// All SMs are in common for now, since no reserve is kept: kernels that cannot be rewritten run anywhere, the others
  /// as workers. It needs no grant; there may be more programs than SMs.
  lent,
};

inline constexpr std::array<std::string_view, 6> kModeNames = {"workers", "free", "turns", "part", "common", "lent"};
constexpr std::string_view name_of(Mode mode) {
  return kModeNames[static_cast<std::size_t>(mode)];
}

/// Whether all kernels keep their original form, on SMs that nobody takes away.
constexpr bool is_confined(Mode mode) {
  return mode == Mode::part || mode == Mode::common;
}
/// Whether kernels in original form need no grant of their own.
constexpr bool is_in_common(Mode mode) {
  return mode == Mode::common || mode == Mode::lent;
}

/// Grant::flags has it in these bits.
inline constexpr std::uint32_t kModeShift = 4, kModeMask = 7u << kModeShift;
constexpr std::uint32_t pack_mode(Mode mode) {
  return static_cast<std::uint32_t>(mode) << kModeShift;
}
/// Whatever the page says.
constexpr Mode mode_of(std::uint32_t flags) {
  const std::uint32_t found = (flags & kModeMask) >> kModeShift;
  return found < kModeNames.size() ? static_cast<Mode>(found) : Mode::workers;
}

}  // namespace gpuctl::ipc
