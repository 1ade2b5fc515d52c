// The duration of a block. A block occupies its slot for the longer of its interpretation and its modelled time:
//
//   modelled = warp instructions of the block / warps of the block x SOFTGPU_WARP_INSTRUCTION_NS
//
// In the model the warps of a block run side by side, and each of their instructions takes a fixed time. An SM holds at
// most 64 warps, so the interpretation loads the host with at most
//
//   cores = SMs x 64 x cost of interpreting a warp instruction / SOFTGPU_WARP_INSTRUCTION_NS
//
// for a grid of any shape. The interpreter needs 10 to 35 ns for ordinary instructions, and 70 to 200 ns for atomics,
// shuffles and barriers (engine/bench.cc). With the default, that is 0.2 to 0.7 cores for 8 full SMs. A sleep at the
// end of a block costs 10 to 20 us more. So blocks of fewer than some twenty instructions are CPU-bound when they fill
// all SMs, and so are full SMs of blocks that do nothing but shuffles. Otherwise virtual SMs do not compete for two
// cores: a kernel that holds half the SMs runs at half the speed and does not slow the other half. api/bench.cc
// measures this.
//
// The interpretation must not run far ahead of the model: a persistent worker that has claimed all its block-tasks
// within the first microseconds could no longer be evicted. So the engine calls pace() between turns of warps, and
// pace() sleeps until the model has caught up. A lead too small for a sleep is carried over to the next block that the
// thread runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace gpuctl::softgpu {

/// 25 us: see above. A real SM needs some 10 ns for the same, so this GPU is 2,500 times slower.
inline constexpr std::uint64_t kDefaultWarpInstructionNs = 25'000;

/// The modelled clock of one block. Used by the thread that runs the block.
class BlockClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// The block starts now, `carried` ahead of the host. Once `abort` is true, nothing sleeps for long.
  BlockClock(std::uint32_t threads, std::uint64_t warp_instruction_ns, Clock::duration carried,
             const std::atomic<bool>& abort);

  /// Sleeps until the modelled time of that many warp instructions, if it is far enough ahead for a sleep.
  void pace(std::uint64_t warp_instructions) const;

  /// The block has not run for so long: its context did not have its turn.
  void pause(Clock::duration lasted) { start_ += lasted; }

  /// Sleeps until the modelled end of a block that executed that many warp instructions. If `may_carry`, a small lead
  /// is returned instead, to be carried over.
  Clock::duration finish(std::uint64_t warp_instructions, bool may_carry) const;

 private:
  /// The modelled end of that many warp instructions.
  Clock::time_point due(std::uint64_t warp_instructions) const;
  bool sleep_until(Clock::time_point end, Clock::duration least) const;

  const std::atomic<bool>& abort_;
  Clock::time_point start_;
  double instruction_ns_;  ///< modelled time of one warp instruction of the block
};

}  // namespace gpuctl::softgpu
