// The state of the warp and block that a handler works on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "softgpu/engine/instruction.h"

namespace gpuctl::softgpu::engine {

class MemoryMap;

/// Recently used valid address ranges. A hit costs a subtraction and a comparison.
struct RangeCache {
  static constexpr int kEntries = 16;
  static constexpr int kFixed = 4;  ///< the first ones, of the block itself, are never replaced
  static constexpr int kHints = 64;
  std::uint64_t begin[kEntries] = {};
  std::uint64_t size[kEntries] = {};
  int used = 0;
  int next = 0;
  std::uint8_t hint[kHints] = {};  ///< the range an instruction hit last, by a hash of its place

  __attribute__((always_inline)) static std::size_t slot_of(const Instruction& in) {
    return reinterpret_cast<std::uintptr_t>(&in) / sizeof(Instruction) % kHints;
  }
  __attribute__((always_inline)) int hint_of(const Instruction& in) const { return hint[slot_of(in)]; }
};

struct Context {
  std::byte* base[4] = {};  ///< indexed by Base
  Mask carry = 0;           ///< CC.CF of each lane

  std::byte* shared = nullptr;
  std::uint32_t shared_bytes = 0;
  std::byte* local = nullptr;                  ///< of lane 0
  std::uint32_t local_bytes = 0;               ///< of each lane, which is also the distance between lanes
  const std::uint32_t* local_frame = nullptr;  ///< of each lane: offset of the current call's local memory
  const std::byte* params = nullptr;
  std::uint32_t param_bytes = 0;

  const MemoryMap* memory = nullptr;
  RangeCache ranges;
  alignas(64) std::uint64_t address[kLanes];  ///< of the memory instruction being executed
};

/// Below this no address is valid: Linux never maps there.
inline constexpr std::uint64_t kNullPage = 65536;

/// Checks ctx.address[] of the lanes in `mask` one by one, asks the memory map for ranges not seen yet, and throws a
/// Fault for the first wrong address. Slow: called only if the quick check fails.
void check_addresses(Context& ctx, const Instruction& in, Mask mask, unsigned bytes);

/// The same for offsets in shared (stride 0) or local memory.
void check_window(Context& ctx, const Instruction& in, Mask mask, unsigned bytes, std::uint64_t begin,
                  std::uint64_t stride, std::uint64_t size);

/// CLOCK_MONOTONIC in nanoseconds.
std::uint64_t clock_ns();

}  // namespace gpuctl::softgpu::engine
