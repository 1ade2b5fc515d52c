// cuLaunchKernel, cuLaunchKernelEx.
#include <cuda.h>

#include "softgpu/driver.h"

using namespace gpuctl::softgpu;

namespace {

CUresult launch(const CUlaunchConfig& config, CUfunction handle, void** values, void** extra) {
  return with_stream(config.hStream, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
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
    if (const CUresult made = make_kernel(driver, params, &work); made != CUDA_SUCCESS) return made;
    CUlaunchAttributeValue priority{};
    priority.priority = stream->priority();
    work.attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY] = priority;
    for (unsigned i = 0; i < config.numAttrs; ++i) {
      const CUresult taken = set_attribute(work, config.attrs[i].id, config.attrs[i].value);
      if (taken != CUDA_SUCCESS) return taken;
    }
    return perform(driver, stream, std::move(work));
  });
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                unsigned int shared_bytes, CUstream stream, void** params, void** extra) {
  CUlaunchConfig config{};
  config.gridDimX = grid_x;
  config.gridDimY = grid_y;
  config.gridDimZ = grid_z;
  config.blockDimX = block_x;
  config.blockDimY = block_y;
  config.blockDimZ = block_z;
  config.sharedMemBytes = shared_bytes;
  config.hStream = stream;
  return launch(config, function, params, extra);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params, void** extra) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return launch(*config, function, params, extra);
}

}  // extern "C"
