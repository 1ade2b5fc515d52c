// On how few SMs a launch can be that may need all its blocks on the GPU at the same time.
//
// Blocks that wait for each other in an ordinary launch hang where they are not all resident, unless they wait for
// blocks of lower number only, as a grid that is larger than the GPU must. So such a launch is confined only to SMs
// that hold its whole grid at once, if the GPU does. It is known of kernels with PTX whether their blocks wait. Of
// machine code it is not. A program sizes a grid that must be resident by the SMs that it was told of, so of machine
// code only grids count that these hold at once.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "libgpuslice/image/kernels.h"

namespace gpuslice {

/// The text of `gpuctl explain` for a kernel with KernelInfo::stuck.
inline constexpr char kStuck[] = "a launch of it did not end on the SMs to which it was confined";

/// A launch, and the GPU for it.
struct WholeGrid {
  CUfunction function = nullptr;
  std::uint64_t blocks = 0;
  std::uint32_t threads = 0, shared = 0;  ///< of a block
  std::uint32_t sms = 0;                  ///< of the device
  std::uint32_t told = 0;                 ///< SMs that the program was told of
};

/// Notes in a kernel that was just made what its name says.
void note_by_name(KernelInfo& kernel);

/// Whether the blocks of its launches may wait for each other.
inline bool blocks_may_wait(const KernelInfo* kernel) {
  return !kernel || kernel->blocks_wait.load(std::memory_order_relaxed) != gpuctl::ptx::BlocksWait::kNo;
}

/// The fewest SMs to which the launch may be confined; 0: any number. `kernel` may be null. The context must be
/// current.
std::uint32_t least_sms_of(KernelInfo* kernel, const WholeGrid& grid);

/// The same, where one SM holds `per_sm` of its blocks.
std::uint32_t least_for_grid(std::uint64_t blocks, std::uint64_t per_sm, std::uint32_t sms);

}  // namespace gpuslice
