#include "libgpuslice/image/whole_grid.h"

#include <algorithm>

#include "libgpuslice/base/driver.h"
#include "libgpuslice/image/co_residency.h"

namespace gpuslice {

using gpuctl::ptx::BlocksWait;

namespace {

constexpr std::uint64_t kMostBlocksOnSm = 32;  // on every architecture

/// One number for the kind of blocks and how many of them an SM holds; 0 is none.
constexpr std::uint64_t packed(std::uint32_t threads, std::uint32_t shared, std::uint64_t per_sm) {
  return std::uint64_t{shared} << 32 | std::uint64_t{threads & 0xffff} << 16 | (per_sm & 0xff) << 1 | 1;
}

/// How many blocks of the launch one SM holds; 0 if the driver does not say. It is asked again where the kind of blocks
/// is not the latest one.
std::uint64_t blocks_on_sm(KernelInfo* kernel, const WholeGrid& grid) {
  constexpr std::uint64_t kAnswer = 0xffff;
  const std::uint64_t known = kernel ? kernel->held_by_sm.load(std::memory_order_relaxed) : 0;
  if (known != 0 && (known & ~kAnswer) == (packed(grid.threads, grid.shared, 0) & ~kAnswer)) return known >> 1 & 0xff;
  int per_sm = 0;
  const auto ask = driver().cuOccupancyMaxActiveBlocksPerMultiprocessor;
  if (!ask || ask(&per_sm, grid.function, static_cast<int>(grid.threads), grid.shared) != CUDA_SUCCESS) per_sm = 0;
  const auto found = static_cast<std::uint64_t>(std::max(per_sm, 0));
  if (kernel) kernel->held_by_sm.store(packed(grid.threads, grid.shared, found), std::memory_order_relaxed);
  return found;
}

}  // namespace

void note_by_name(KernelInfo& kernel) {
  kernel.waits_by_name = blocks_may_wait(kernel.name);
  if (kernel.waits_by_name) kernel.blocks_wait = BlocksWait::kYes;
}

std::uint32_t least_for_grid(std::uint64_t blocks, std::uint64_t per_sm, std::uint32_t sms) {
  if (per_sm == 0 || blocks > per_sm * sms) return 0;
  return static_cast<std::uint32_t>((blocks + per_sm - 1) / per_sm);
}

std::uint32_t least_sms_of(KernelInfo* kernel, const WholeGrid& grid) {
  if (!blocks_may_wait(kernel)) return 0;
  const bool waits = kernel && kernel->blocks_wait.load(std::memory_order_relaxed) == BlocksWait::kYes;
  const std::uint32_t sms = waits ? grid.sms : std::min(grid.told, grid.sms);
  if (grid.blocks <= 1) return 0;
  const bool too_large = grid.blocks > kMostBlocksOnSm * sms;
  const std::uint64_t per_sm = too_large ? 0 : blocks_on_sm(kernel, grid);
  const std::uint32_t least = least_for_grid(grid.blocks, per_sm, sms);
  // Those that are known by their names may wait in any order.
  const bool anywhere = kernel && (kernel->waits_by_name || (waits && !too_large && per_sm == 0));
  return least == 0 && anywhere ? kAllSms : least;
}

}  // namespace gpuslice
