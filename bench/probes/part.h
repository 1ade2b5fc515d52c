// Parts of a GPU (green contexts), and launches in clusters into them. Shared by the probes beside it.
#pragma once

#include <cuda.h>

#include <vector>

using Groups = std::vector<CUdevResource>;

struct Part {
  CUgreenCtx context = nullptr;
  CUstream stream = nullptr;
};

/// A part of these groups, and a stream of it.
inline CUresult make_part(Groups groups, Part* part) {
  CUdevice device = 0;
  CUdevResourceDesc description = nullptr;
  CUresult result = cuCtxGetDevice(&device);
  if (result == CUDA_SUCCESS)
    result = cuDevResourceGenerateDesc(&description, groups.data(), static_cast<unsigned>(groups.size()));
  if (result == CUDA_SUCCESS)
    result = cuGreenCtxCreate(&part->context, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
  if (result == CUDA_SUCCESS) result = cuGreenCtxStreamCreate(&part->stream, part->context, CU_STREAM_NON_BLOCKING, 0);
  return result;
}

inline void destroy(const Part& part) {
  if (part.stream) cuStreamDestroy(part.stream);
  if (part.context) cuGreenCtxDestroy(part.context);
}

/// Launches blocks of a warp, in clusters of so many. `shared`: bytes of shared memory of each.
inline CUresult launch_in_clusters(CUfunction function, void** params, CUstream stream, unsigned blocks,
                                   unsigned cluster, unsigned shared = 0) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = cluster;
  attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  CUlaunchConfig config{};
  config.gridDimX = blocks;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 32;
  config.sharedMemBytes = shared;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = cluster > 1 ? 1 : 0;
  return cuLaunchKernelEx(&config, function, params, nullptr);
}

/// Makes the primary context of the first GPU current.
inline CUresult use_first_gpu() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDeviceGet(&device, 0);
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, device);
  return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
}
