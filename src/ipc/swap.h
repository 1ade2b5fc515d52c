// Where a program's device memory is, as its page says (Stub::swap): on its GPUs, or on the host while its slice is
// frozen so. The library moves it by the driver's cuCheckpointProcess*, as the daemon wants (Stub::swap_wanted).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gpuctl::ipc {

/// In the order of its way out and back; has_left() goes by that.
enum class MemoryIs : std::uint8_t {
  on_gpu,
  leaving,
  on_host,
  returning,
  without_room,  ///< it is to return and cannot yet: the driver has refused it, which is tried again
  lost,          ///< the driver gave the program up on the way (CU_PROCESS_STATE_FAILED)
};

/// Why it stays on the GPU, though it is wanted on the host.
enum class NotSwapped : std::uint8_t {
  no_reason,
  no_calls,    ///< the driver has none for it
  works,       ///< it is tried again
  managed,     ///< the program has used managed memory
  shares_mps,  ///< it shares the context of an MPS
  refused,     ///< by the driver, with Swap::error
  by_hand,     ///< somebody else has brought it back
  no_thread,
};
inline constexpr std::array<std::string_view, 8> kNotSwappedWords = {
    "",
    "the driver has no calls for that (570 and later have)",
    "work of it waits on the GPU",
    "it has used managed memory, which the driver does not move",
    "it shares the GPU by MPS, where that is not tried",
    "the driver refuses it",
    "it was brought back by hand",
    "it has no thread left for that",
};

struct Swap {
  MemoryIs memory = MemoryIs::on_gpu;
  NotSwapped why = NotSwapped::no_reason;
  std::uint16_t error = 0;  ///< the driver's, a CUresult

  /// Nothing of the program is on the GPUs, until its memory is back.
  constexpr bool has_left() const { return memory >= MemoryIs::on_host; }
  constexpr bool on_host() const { return has_left() && memory != MemoryIs::lost; }
  bool operator==(const Swap&) const = default;
};
constexpr std::uint32_t pack_swap(const Swap& swap) {
  return static_cast<std::uint32_t>(swap.memory) | static_cast<std::uint32_t>(swap.why) << 8 |
         std::uint32_t{swap.error} << 16;
}
/// Whatever the page says.
constexpr Swap swap_of(std::uint32_t word) {
  const std::uint32_t memory = word & 0xff, why = word >> 8 & 0xff;
  if (memory > static_cast<std::uint32_t>(MemoryIs::lost) || why >= kNotSwappedWords.size()) return {};
  return {static_cast<MemoryIs>(memory), static_cast<NotSwapped>(why), static_cast<std::uint16_t>(word >> 16)};
}

}  // namespace gpuctl::ipc
