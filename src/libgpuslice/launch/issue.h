// Workers of a launch, as the driver is asked for them.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libgpuslice/client/grant_view.h"
#include "libgpuslice/launch/outstanding.h"

namespace gpuslice {

/// How a kernel can be launched in persistent form: its function there, and how many of its workers one SM holds. 0: it
/// has no persistent form, or none for this shape.
struct Fit {
  CUfunction function;
  int per_sm;
};
Fit fit_of(Instance& instance, const LaunchConfig& config);

/// Launches a one-dimensional grid of so many blocks, with the rest as in `config`. `shared`: dynamic, in bytes.
CUresult launch_grid(CUfunction function, std::uint32_t blocks, const LaunchConfig& config, std::uint32_t shared,
                     CUstream stream, std::vector<std::byte>& params);
/// How much memory the parameters point into, if the daemon is told of jobs; else 0. Any thread.
std::uint64_t input_bytes(const GrantView& view, std::span<const std::byte> params);

/// Launches so many workers. `params`: the packed parameter block.
CUresult issue(const Launch& launch, CUstream stream, std::uint32_t workers, std::vector<std::byte>& params);

}  // namespace gpuslice
