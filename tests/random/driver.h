// The few functions of the CUDA driver API used here, opened at run time: the generator's tests need no driver.
#pragma once

#include <cuda.h>

#include <stdexcept>
#include <string>

namespace gpuctl::random_kernels {

/// What no run can go on after; what() is one line for a person.
class Failure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

#define RANDOM_KERNELS_DRIVER_FUNCTIONS(X) \
  X(cuInit)                                \
  X(cuDevicePrimaryCtxRetain)              \
  X(cuCtxSetCurrent)                       \
  X(cuModuleLoadData)                      \
  X(cuModuleUnload)                        \
  X(cuModuleGetFunction)                   \
  X(cuModuleGetGlobal_v2)                  \
  X(cuMemAlloc_v2)                         \
  X(cuMemcpyHtoD_v2)                       \
  X(cuMemcpyDtoH_v2)                       \
  X(cuStreamCreate)                        \
  X(cuStreamSynchronize)                   \
  X(cuLaunchKernel)                        \
  X(cuGetErrorName)

/// Under their symbols' names.
struct Driver {
#define X(name) decltype(&::name) name = nullptr;
  RANDOM_KERNELS_DRIVER_FUNCTIONS(X)
#undef X
};

/// The process's driver, loaded at the first call. Throws Failure when there is none.
const Driver& driver();

/// Throws Failure "CALL: CUDA_ERROR_..." unless `result` is success.
void check(CUresult result, const char* call);

}  // namespace gpuctl::random_kernels

/// Calls a driver function and throws Failure when it fails: CUDA_CALL(cuInit, 0).
#define CUDA_CALL(function, ...) \
  ::gpuctl::random_kernels::check(::gpuctl::random_kernels::driver().function(__VA_ARGS__), #function)
