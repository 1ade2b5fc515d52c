#include "kernels/timing/calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "kernels/run/workbench.h"
#include "kernels/timing/clock.h"
#include "kernels/timing/iterations.h"

namespace gpuctl::bench {
namespace {

constexpr int kTrials = 3;                       // the fastest counts: nothing makes a kernel too fast
constexpr std::uint32_t kMostBlocks = 1u << 22;  // output of 16 MiB
constexpr std::uint32_t kMoreWaves = 4;
constexpr std::int64_t kPollNs = 50'000;
constexpr int kFailedStatus = 1;

/// Times kernels alone on the GPU, each within a limit.
class Stopwatch {
 public:
  explicit Stopwatch(double target_us) : limit_ns_(10'000'000'000 + static_cast<std::int64_t>(20 * target_us * 1000)) {}

  double microseconds(const KernelSpec& spec, const Extent& extent) const {
    Workbench bench(spec, extent, 1, 1, false);
    return microseconds(bench);
  }

  double microseconds(Workbench& bench) const {
    double best = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      CUDA_CALL(cuEventRecord, start_.get(), stream_.get());
      bench.launch(0, stream_.get());
      CUDA_CALL(cuEventRecord, end_.get(), stream_.get());
      wait(bench.problem());
      float milliseconds = 0;
      CUDA_CALL(cuEventElapsedTime, &milliseconds, start_.get(), end_.get());
      best = trial == 0 ? milliseconds * 1000.0 : std::min(best, milliseconds * 1000.0);
    }
    return best;
  }

 private:
  // Out of time the process ends here and now: freeing what the kernel uses would wait for the kernel.
  void wait(const Problem& problem) const {
    const std::int64_t deadline = now_ns() + limit_ns_;
    for (;;) {
      const CUresult state = driver().cuEventQuery(end_.get());
      if (state != CUDA_ERROR_NOT_READY) return check(state, "cuEventQuery");
      if (now_ns() > deadline) {
        std::fprintf(stderr, "gpuslice-bench: calibration: %llu blocks still run after %.0f s\n",
                     static_cast<unsigned long long>(problem.block_tasks()), static_cast<double>(limit_ns_) / 1e9);
        std::_Exit(kFailedStatus);
      }
      sleep_until_ns(now_ns() + kPollNs);
    }
  }

  std::int64_t limit_ns_;
  Stream stream_{Priority::kNone};
  Event start_{true};
  Event end_{true};
};

/// Blocks that the GPU holds at the same time.
std::uint32_t blocks_of_one_wave(const Gpu& gpu, const KernelSpec& spec) {
  const Problem problem = spec.generate({1, 1}, 1);
  int per_sm = 0;
  CUDA_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &per_sm, load_kernel(spec.ptx, spec.name),
            static_cast<int>(problem.steps.front().block.count()), 0);
  return static_cast<std::uint32_t>(std::max(1, per_sm) * gpu.sms());
}

}  // namespace

Extent calibrate(const Gpu& gpu, const KernelSpec& spec, Extent extent, const Targets& targets) {
  const Stopwatch stopwatch(std::max(targets.task_us.value_or(0), targets.kernel_us.value_or(0)));
  if (!targets.task_us) {
    const auto whole_kernel = [&](std::uint32_t n) { return stopwatch.microseconds(spec, {extent.x, n}); };
    extent.y = iterations_for(whole_kernel, *targets.kernel_us);
    return extent;
  }
  // What one more wave of blocks adds is the time of a block-task, without the cost of the launch.
  const std::uint32_t wave = blocks_of_one_wave(gpu, spec);
  const auto one_task = [&](std::uint32_t n) {
    const double one_wave = stopwatch.microseconds(spec, {wave, n});
    return (stopwatch.microseconds(spec, {(1 + kMoreWaves) * wave, n}) - one_wave) / kMoreWaves;
  };
  extent.y = iterations_for(one_task, *targets.task_us);
  if (targets.kernel_us) {
    const double waves = std::max(1.0, std::round(*targets.kernel_us / *targets.task_us));
    const double blocks = std::min(waves * wave, double{kMostBlocks});
    extent.x = static_cast<std::uint32_t>(blocks);
    const double scale = *targets.kernel_us / stopwatch.microseconds(spec, extent);
    extent.x = static_cast<std::uint32_t>(std::clamp(std::round(blocks * scale), 1.0, double{kMostBlocks}));
  }
  return extent;
}

std::uint32_t calibrate_repeats(Workbench& bench, double target_us) {
  const Stopwatch stopwatch(target_us);
  const auto whole = [&](std::uint32_t n) {
    if (n > kMostRepeats) throw Failure("calibration: a larger --extent is needed to take that long");
    bench.repeat(n);
    return stopwatch.microseconds(bench);
  };
  const std::uint32_t repeats = iterations_for(whole, target_us);
  whole(repeats);
  return repeats;
}

}  // namespace gpuctl::bench
