// How large the subgrids of a kernel are (ptx/subgrid_abi.h), and how many of them may wait on the GPU. Pure.
//
// A subgrid of fewer blocks than fit on the SMs at the same time, a *wave*, takes as long as a whole wave, because a
// block takes as long. So a subgrid is as many waves as fit into its time, and one wave at least.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuslice {

/// Blocks of the next subgrid. `left`: block-tasks that are left, at least 1. `wave`: blocks that fit, at least 1.
/// `task_ns`: what a block-task takes; 0: not known yet. `target_ns`: what a subgrid should take.
constexpr std::uint64_t subgrid_blocks(std::uint64_t left, std::uint64_t wave, double task_ns, double target_ns) {
  const double fit = task_ns > 0 ? target_ns / task_ns : 1;
  if (fit * static_cast<double>(wave) >= static_cast<double>(left)) return left;
  return std::min(left, wave * std::max<std::uint64_t>(1, static_cast<std::uint64_t>(fit)));
}

/// Waves of so many blocks.
constexpr double subgrid_waves(std::uint64_t blocks, std::uint64_t wave) {
  return static_cast<double>((blocks + wave - 1) / wave);
}

/// The most subgrids of a stream that may be on the GPU.
inline constexpr std::uint32_t kMostSubgrids = 14;

/// Whether a subgrid may be launched behind `waiting` ones that are expected to take `expected_ns`. One may always
/// wait behind the one that runs: otherwise the GPU would be idle from the end of each to the launch of the next. Of
/// short ones more may wait.
constexpr bool may_launch_subgrid(std::uint32_t waiting, double expected_ns, double target_ns) {
  return waiting < 2 || (waiting < kMostSubgrids && expected_ns <= target_ns);
}

}  // namespace gpuslice
