// Errors of the runtime: those of the driver under other names (the numbers agree), remembered per thread.
#pragma once

#include <cuda.h>
#include <driver_types.h>

#include "softgpu/cudart/driver.h"

namespace gpuctl::softgpu::cudart {

/// Remembers an error as the calling thread's last one and returns it. cudaSuccess and cudaErrorNotReady are not kept.
/// A fault of a kernel cannot be taken back by cudaGetLastError, only by cudaDeviceReset.
cudaError_t report(cudaError_t error);

/// Faults that were remembered before count no more, in any thread: the broken context is gone.
void forget_faults();

inline cudaError_t report(CUresult error) {
  return report(static_cast<cudaError_t>(error));
}

}  // namespace gpuctl::softgpu::cudart

/// `RUN(cuMemFree, address)`: enters the driver, calls it, reports. (Not by way of DRIVER(): an argument of ## is not
/// expanded, so the names stay as they are written here, without the version that cuda.h puts behind some.)
#define RUN(name, ...)                                                    \
  [&] {                                                                   \
    CUresult outcome_ = gpuctl::softgpu::cudart::enter();                 \
    if (outcome_ == CUDA_SUCCESS) {                                       \
      outcome_ = gpuctl::softgpu::cudart::driver().p_##name(__VA_ARGS__); \
    }                                                                     \
    return gpuctl::softgpu::cudart::report(outcome_);                     \
  }()
