// cuLaunchKernel, cuLaunchKernelEx, cuLaunchCooperativeKernel.
#include <cuda.h>

#include <algorithm>
#include <bit>

#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

/// All blocks of a cooperative grid must fit together on the SMs of the stream. No more is needed: blocks are started
/// in order, and stay on their SM until they end. Graphs cannot have such kernels.
CUresult check_cooperative(Driver& driver, Stream& stream, const KernelWork& work, const CUlaunchConfig& config) {
  bool capturing = false;
  if (const CUresult refused = driver.captures.check_work(stream, &capturing); refused != CUDA_SUCCESS) return refused;
  if (capturing) return CUDA_ERROR_NOT_SUPPORTED;
  const int threads = static_cast<int>(config.blockDimX * config.blockDimY * config.blockDimZ);
  const int per_sm = blocks_per_sm(*work.function->kernel, threads, config.sharedMemBytes);
  const Table& table = *stream.context()->device().table;
  const int sms =
      std::min(std::popcount(stream.allowed_sms() & first_sms(table.sms())), static_cast<int>(table.own_sms()));
  const std::uint64_t room = static_cast<std::uint64_t>(per_sm) * static_cast<std::uint64_t>(sms);
  const std::uint64_t blocks = std::uint64_t{config.gridDimX} * config.gridDimY * config.gridDimZ;
  return blocks > room ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

/// Blocks in clusters run like others, since no kernel that can run uses what is special about clusters.
CUresult check_clusters(const Stream& stream, const CUlaunchConfig& config, engine::Dim3 cluster) {
  const std::uint64_t blocks = std::uint64_t{cluster.x} * cluster.y * cluster.z;
  if (blocks <= 1) return CUDA_SUCCESS;
  const unsigned most = stream.green() == nullptr ? kMostInCluster : stream.green()->most_in_cluster();
  const bool fits = blocks <= most && config.gridDimX % cluster.x == 0 && config.gridDimY % cluster.y == 0 &&
                    config.gridDimZ % cluster.z == 0;
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

/// Takes an attribute whose launches must fit, or any other one.
CUresult take_attribute(Driver& driver, Stream& stream, KernelWork& work, const CUlaunchConfig& config,
                        const CUlaunchAttribute& attribute) {
  const CUlaunchAttributeValue& value = attribute.value;
  if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && value.cooperative != 0)
    return check_cooperative(driver, stream, work, config);
  if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    const engine::Dim3 cluster{value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
    if (const CUresult refused = check_clusters(stream, config, cluster); refused != CUDA_SUCCESS) return refused;
  }
  return set_attribute(work, attribute.id, value);
}

CUresult launch(const CUlaunchConfig& config, CUfunction handle, void** values, void** extra,
                const char* call = __builtin_FUNCTION()) {
  return with_stream(
      config.hStream,
      [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
        CUDA_KERNEL_NODE_PARAMS params{};
        params.func = handle;
        params.gridDimX = config.gridDimX;
        params.gridDimY = config.gridDimY;
        params.gridDimZ = config.gridDimZ;
        params.blockDimX = config.blockDimX;
        params.blockDimY = config.blockDimY;
        params.blockDimZ = config.blockDimZ;
        params.sharedMemBytes = config.sharedMemBytes;
        params.kernelParams = values;
        params.extra = extra;
        KernelWork work;
        if (const CUresult made = make_kernel(driver, *stream->context(), params, &work); made != CUDA_SUCCESS)
          return made;
        const Context* code = work.function->module->context;
        if (code != nullptr && code != stream->context()) return CUDA_ERROR_INVALID_HANDLE;
        work.launch.allowed = stream->allowed_sms();
        CUlaunchAttributeValue priority{};
        priority.priority = stream->priority();
        work.attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY] = priority;
        for (unsigned i = 0; i < config.numAttrs; ++i) {
          const CUresult taken = take_attribute(driver, *stream, work, config, config.attrs[i]);
          if (taken != CUDA_SUCCESS) return taken;
        }
        const CUresult own = check_clusters(*stream, config, work.function->kernel->cluster);
        if (own != CUDA_SUCCESS) return own;
        driver.uses(*work.function, *stream->context());
        return perform(driver, stream, std::move(work));
      },
      call);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                unsigned int shared_bytes, CUstream stream, void** params, void** extra) {
  return launch({grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, nullptr, 0}, function, params,
                extra);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params, void** extra) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return launch(*config, function, params, extra);
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                           unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                           unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                           void** params) {
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  return launch({grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, &cooperative, 1}, function,
                params, nullptr);
}

}  // extern "C"
