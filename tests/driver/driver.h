// What the driver-API programs beside this file share: error checks, kernels as PTX text, and memory.
//
// Unlike gpuslice-bench they are linked with -lgpuslice (and -lcuda), as a program that uses <gpuslice/gpuslice.h> is.
#pragma once

#include <cuda.h>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

/// exit() from the first thread that comes here. Others wait for the end: exit() in two threads at once is undefined.
[[noreturn]] inline void exit_once(int status) {
  static std::atomic<bool> exits{false};
  if (exits.exchange(true))
    for (;;) pause();
  std::exit(status);
}

/// Where this thread says which call it makes, in a program that wants to know what hangs.
inline thread_local std::atomic<const char*>* t_latest_call = nullptr;

#define DRIVER_CHECK(call)                                                              \
  do {                                                                                  \
    if (t_latest_call) *t_latest_call = #call;                                          \
    const CUresult status = (call);                                                     \
    if (status != CUDA_SUCCESS) {                                                       \
      std::fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, status); \
      exit_once(1);                                                                     \
    }                                                                                   \
  } while (false)

/// Makes the primary context of the first GPU current.
inline void use_first_gpu() {
  CUcontext context = nullptr;
  DRIVER_CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  DRIVER_CHECK(cuCtxSetCurrent(context));
}

inline CUfunction load_kernel(const char* ptx, const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  DRIVER_CHECK(cuModuleLoadData(&module, ptx));
  DRIVER_CHECK(cuModuleGetFunction(&function, module, name));
  return function;
}
