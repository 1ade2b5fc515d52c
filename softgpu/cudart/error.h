// Errors of the runtime: the driver's errors under other names (the numbers agree), remembered per thread.
#pragma once

#include <cuda.h>
#include <driver_types.h>

#include "softgpu/cudart/driver.h"

namespace gpuctl::softgpu::cudart {

/// Remembers an error as the calling thread's last one and returns it. cudaSuccess and cudaErrorNotReady are not
/// remembered. cudaGetLastError does not clear a fault of a kernel; only cudaDeviceReset does.
cudaError_t report(cudaError_t error);

/// Forgets remembered faults, in all threads: the broken context is gone.
void forget_faults();

inline cudaError_t report(CUresult error) {
  return report(static_cast<cudaError_t>(error));
}

}  // namespace gpuctl::softgpu::cudart

/// `RUN(cuMemFree, address)`: enters the driver, calls it, reports. (It does not use DRIVER(): an argument of ## is not
/// expanded, so names stay as they are written here, without the version suffix that cuda.h appends to some.)
#define RUN(name, ...)                                                    \
  [&] {                                                                   \
    CUresult outcome_ = gpuctl::softgpu::cudart::enter();                 \
    if (outcome_ == CUDA_SUCCESS) {                                       \
      outcome_ = gpuctl::softgpu::cudart::driver().p_##name(__VA_ARGS__); \
    }                                                                     \
    return gpuctl::softgpu::cudart::report(outcome_);                     \
  }()
