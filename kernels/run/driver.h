// The CUDA driver API, opened at run time: a program starts and explains itself without a GPU. What gpuslice-bench and
// tests/random call.
#pragma once

#include <cuda.h>

#include <stdexcept>
#include <string>

#undef cuEventElapsedTime  // the oldest symbol serves every driver; the header would rename it

namespace gpuctl::bench {

/// What no run can go on after; what() is one line for a person.
class Failure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

#define GPUSLICE_BENCH_DRIVER_FUNCTIONS(X)       \
  X(cuInit)                                      \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetName)                             \
  X(cuDeviceGetAttribute)                        \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuCtxSetCurrent)                             \
  X(cuCtxGetStreamPriorityRange)                 \
  X(cuModuleLoadData)                            \
  X(cuModuleUnload)                              \
  X(cuModuleGetFunction)                         \
  X(cuModuleGetGlobal_v2)                        \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuMemAlloc_v2)                               \
  X(cuMemFree_v2)                                \
  X(cuMemAllocHost_v2)                           \
  X(cuMemFreeHost)                               \
  X(cuMemcpyHtoD_v2)                             \
  X(cuMemcpyDtoH_v2)                             \
  X(cuMemcpyHtoDAsync_v2)                        \
  X(cuMemcpyDtoHAsync_v2)                        \
  X(cuMemsetD32Async)                            \
  X(cuStreamCreate)                              \
  X(cuStreamCreateWithPriority)                  \
  X(cuStreamSynchronize)                         \
  X(cuStreamDestroy_v2)                          \
  X(cuEventCreate)                               \
  X(cuEventRecord)                               \
  X(cuEventQuery)                                \
  X(cuEventSynchronize)                          \
  X(cuEventDestroy_v2)                           \
  X(cuLaunchKernel)                              \
  X(cuGetErrorName)

/// The functions used here, under their symbols' names.
struct Driver {
#define X(name) decltype(&::name) name = nullptr;
  GPUSLICE_BENCH_DRIVER_FUNCTIONS(X)
#undef X
  CUresult (*cuEventElapsedTime)(float* milliseconds, CUevent start, CUevent end) = nullptr;
};

/// The process's driver, loaded at the first call. Throws Failure when there is none.
const Driver& driver();

/// Throws Failure "CALL: CUDA_ERROR_..." unless `result` is success.
void check(CUresult result, const char* call);

}  // namespace gpuctl::bench

/// Calls a driver function and throws Failure when it fails: CUDA_CALL(cuInit, 0).
#define CUDA_CALL(function, ...) ::gpuctl::bench::check(::gpuctl::bench::driver().function(__VA_ARGS__), #function)
