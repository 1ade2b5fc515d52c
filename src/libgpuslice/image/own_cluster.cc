#include "libgpuslice/image/own_cluster.h"

#include <algorithm>

#include "libgpuslice/base/driver.h"

namespace gpuslice {

namespace {

/// 1 if it is not set, or not known.
std::uint32_t ask(CUfunction function, CUfunction_attribute attribute) {
  const Driver& d = driver();
  CUdevice device = 0;
  int value = 0;
  const bool known =
      (d.cuFuncGetAttribute && d.cuFuncGetAttribute(&value, attribute, function) == CUDA_SUCCESS) ||
      (d.cuKernelGetAttribute && d.cuCtxGetDevice(&device) == CUDA_SUCCESS &&
       d.cuKernelGetAttribute(&value, attribute, reinterpret_cast<CUkernel>(function), device) == CUDA_SUCCESS);
  return known ? static_cast<std::uint32_t>(std::max(value, 1)) : 1;
}

}  // namespace

std::uint32_t own_cluster(KernelInfo& kernel, CUfunction function) {
  if (const std::uint32_t known = kernel.own_cluster.load(std::memory_order_relaxed)) return known;
  std::uint32_t blocks = 1;
  for (const auto extent : {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
                            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH})
    blocks *= ask(function, extent);
  kernel.own_cluster.store(blocks, std::memory_order_relaxed);
  return blocks;
}

}  // namespace gpuslice
