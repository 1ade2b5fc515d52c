#include "calibrate.h"

#include <algorithm>
#include <cmath>

#include "workbench.h"

namespace gpuctl::bench {
namespace {

constexpr int kTrials = 3;  // the fastest counts: nothing makes a kernel too fast
constexpr std::uint32_t kFirstIterations = 8;
constexpr std::uint32_t kMostIterations = 1u << 28;
constexpr std::uint32_t kMostBlocks = 1u << 22;  // output of 4 GiB

double microseconds(const KernelSpec& spec, const Extent& extent) {
  Workbench bench(spec, extent, 1, 1, false);
  const Stream stream(Priority::kNone);
  const Event start(true);
  const Event end(true);
  double best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    CUDA_CALL(cuEventRecord, start.get(), stream.get());
    bench.launch(0, stream.get());
    CUDA_CALL(cuEventRecord, end.get(), stream.get());
    CUDA_CALL(cuEventSynchronize, end.get());
    float milliseconds = 0;
    CUDA_CALL(cuEventElapsedTime, &milliseconds, start.get(), end.get());
    best = trial == 0 ? milliseconds * 1000.0 : std::min(best, milliseconds * 1000.0);
  }
  return best;
}

/// Doubles and more until the time is near the target, then goes the rest by the slope of the last two points, so
/// that the fixed cost of a launch does not count as iterations.
std::uint32_t iterations_for(const KernelSpec& spec, std::uint32_t blocks, double target_us) {
  std::uint32_t last = 1;
  double last_us = microseconds(spec, {blocks, last});
  std::uint32_t now = kFirstIterations;
  double now_us = microseconds(spec, {blocks, now});
  while (now_us < target_us / 2 && now < kMostIterations / 16) {
    last = now;
    last_us = now_us;
    now *= static_cast<std::uint32_t>(std::clamp(0.8 * target_us / now_us, 2.0, 16.0));
    now_us = microseconds(spec, {blocks, now});
  }
  const double slope = std::max((now_us - last_us) / (now - last), 1e-6);
  const double wanted = now + (target_us - now_us) / slope;
  return static_cast<std::uint32_t>(std::clamp(std::round(wanted), 1.0, double{kMostIterations}));
}

/// Blocks that the GPU holds at the same time.
std::uint32_t blocks_of_one_wave(const Gpu& gpu, const KernelSpec& spec) {
  const Problem problem = spec.generate({1, 1}, 1);
  int per_sm = 0;
  CUDA_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &per_sm, load_kernel(spec),
            static_cast<int>(problem.block.count()), 0);
  return static_cast<std::uint32_t>(std::max(1, per_sm) * gpu.sms());
}

}  // namespace

Extent calibrate(const Gpu& gpu, const KernelSpec& spec, Extent extent, const Targets& targets) {
  if (!targets.task_us) {
    extent.y = iterations_for(spec, extent.x, *targets.kernel_us);
    return extent;
  }
  const std::uint32_t wave = blocks_of_one_wave(gpu, spec);
  extent.y = iterations_for(spec, wave, *targets.task_us);
  if (targets.kernel_us) {
    const double waves = std::max(1.0, std::round(*targets.kernel_us / *targets.task_us));
    const double blocks = std::min(waves * wave, double{kMostBlocks});
    extent.x = static_cast<std::uint32_t>(blocks);
    const double scale = *targets.kernel_us / microseconds(spec, extent);
    extent.x = static_cast<std::uint32_t>(std::clamp(std::round(blocks * scale), 1.0, double{kMostBlocks}));
  }
  return extent;
}

}  // namespace gpuctl::bench
