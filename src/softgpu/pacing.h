// How long a block takes. A block occupies its slot for the longer of its interpretation and its modelled time:
//
//   modelled = warp instructions of the block / warps of the block x SOFTGPU_WARP_INSTRUCTION_NS
//
// that is, the warps of a block go on side by side and each of their instructions takes a fixed time. The interpreter
// costs the host about 0.1 to 0.2 us per warp instruction. An SM holds at most 64 warps, so the host's load is bounded
// whatever the shape of the grid:
//
//   cores = SMs x 64 x cost of a warp instruction / SOFTGPU_WARP_INSTRUCTION_NS
//
// The default keeps 8 full SMs at clearly less than two cores: then virtual SMs do not compete for the CPU, and a
// kernel that holds half the SMs really runs at half the speed and leaves the other half alone.
//
// The interpretation must not run ahead of the model: a persistent worker that has claimed all its block-tasks within
// the first microseconds could not be evicted any more. So the engine calls pace() now and then, which sleeps off
// the lead; what is left at the end is slept by the caller of finish().
#pragma once

#include <chrono>
#include <cstdint>

#include "softgpu/engine/engine.h"

namespace gpuctl::softgpu {

inline constexpr std::uint64_t kDefaultWarpInstructionNs = 50'000;

/// The modelled clock of one block. Used by the thread that runs the block.
class BlockClock {
 public:
  using Clock = std::chrono::steady_clock;

  BlockClock(std::uint32_t threads, std::uint64_t warp_instruction_ns);

  /// Sleeps until the modelled time of that many warp instructions, if it is far enough ahead to be worth a sleep.
  void pace(std::uint64_t warp_instructions) const;

  /// Sleeps until the modelled end of a block that executed that many warp instructions.
  void finish(std::uint64_t warp_instructions) const;

  /// When that many warp instructions are over.
  Clock::time_point due(std::uint64_t warp_instructions) const;

 private:
  Clock::time_point start_;
  double instruction_ns_;  ///< modelled time of one warp instruction of the block
};

}  // namespace gpuctl::softgpu
