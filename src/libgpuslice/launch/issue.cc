#include "libgpuslice/launch/issue.h"

#include <algorithm>

#include "libgpuslice/base/allocations.h"
#include "libgpuslice/base/driver.h"

namespace gpuslice {

Fit fit_of(Instance& instance, const LaunchConfig& config) {
  const std::uint64_t tasks = config.block_tasks();
  const std::uint32_t threads = config.threads(), shared = dynamic_shared(*instance.kernel, config.shared);
  if (tasks == 0 || tasks > gpuctl::ptx::kMaxBlockTasks || threads > static_cast<std::uint32_t>(instance.max_threads))
    return {nullptr, 0};
  std::lock_guard lock(instance.kernel->mutex);
  if (!instance.persistent) return {nullptr, 0};
  for (const Instance::Occupancy& known : instance.occupancy) {
    if (known.threads == threads && known.shared == shared) return {instance.persistent, known.per_sm};
  }
  const auto fitting = [&](std::uint32_t bytes) {
    int blocks = 0;
    const CUresult result = driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, instance.persistent,
                                                                                 static_cast<int>(threads), bytes);
    return result == CUDA_SUCCESS ? blocks : 0;
  };
  int per_sm = fitting(shared);
  // The program's blocks just fill an SM, and the larger shared memory of this form leaves room for fewer. Being
  // evictable is not worth a quarter of the speed.
  if (shared != config.shared && 4 * per_sm <= 3 * fitting(config.shared)) per_sm = 0;
  instance.occupancy[instance.occupancy_next++ % instance.occupancy.size()] = {threads, shared, per_sm};
  instance.kernel->per_sm = per_sm;
  return {instance.persistent, per_sm};
}

std::uint64_t input_bytes(const GrantView& view, std::span<const std::byte> params) {
  return view.jobs() == gpuctl::ipc::kNoJobs ? 0 : Allocations::get().bytes_behind(params);
}

CUresult launch_grid(CUfunction function, std::uint32_t blocks, const LaunchConfig& config, std::uint32_t shared,
                     CUstream stream, std::vector<std::byte>& params) {
  std::size_t size = params.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  if (config.attributes.empty()) {
    return driver().cuLaunchKernel(function, blocks, 1, 1, config.block[0], config.block[1], config.block[2], shared,
                                   stream, nullptr, extra);
  }
  const CUlaunchConfig full{blocks,
                            1,
                            1,
                            config.block[0],
                            config.block[1],
                            config.block[2],
                            shared,
                            stream,
                            const_cast<CUlaunchAttribute*>(config.attributes.data()),
                            static_cast<unsigned>(config.attributes.size())};
  return driver().cuLaunchKernelEx(&full, function, nullptr, extra);
}

CUresult issue(const Launch& launch, CUstream stream, std::uint32_t workers, std::vector<std::byte>& params) {
  const std::uint32_t shared = dynamic_shared(*launch.instance->kernel, launch.config.shared);
  return launch_grid(launch.function, workers, launch.config, shared, stream, params);
}

}  // namespace gpuslice
