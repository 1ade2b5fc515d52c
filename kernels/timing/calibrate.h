// Sizes by time: how long a tunable kernel must be to take so many microseconds on the GPU that is there, alone.
// A software GPU is some thousand times slower than a real one; the same demonstration shall work on both.
#pragma once

#include <optional>

#include "kernels/run/gpu.h"
#include "kernels/run/kernel_table.h"
#include "kernels/run/workbench.h"

namespace gpuctl::bench {

/// At least one is set. Only task_us: iterations such that one block-task takes that long when the GPU is full of
/// them. Only kernel_us: iterations such that the whole kernel does, with the blocks given. Both: iterations by
/// task_us, then blocks by kernel_us.
struct Targets {
  std::optional<double> task_us;
  std::optional<double> kernel_us;
};

/// The extent to use in place of `extent`. The GPU must have nothing else to do. Throws Failure when no extent does it;
/// a kernel that runs on and on, because the GPU is not free or stands still, ends the process with one line.
Extent calibrate(const Gpu& gpu, const KernelSpec& spec, Extent extent, const Targets& targets);

/// How often each launch must do its blocks (Workbench::repeat) so that all steps take that long together. It leaves
/// the workbench with that number. The same conditions hold.
std::uint32_t calibrate_repeats(Workbench& bench, double target_us);

}  // namespace gpuctl::bench
