// A libcuda.so.1 in front of the software GPU's, NULL_DEVICE_DRIVER (a path), on which whatever a program does in a
// loop is done at once: launches, copies, events and waits return success and do nothing. All other functions are those
// of the software GPU, graphs too, whose kernels may have workers that must run. Under callgrind it shows how many
// instructions libgpuslice adds to a call (count.py).
//
// Calls come here through null_device_x86_64.S: a jump through the table below.
#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

extern "C" {
/// The function behind each exported name.
__attribute__((visibility("hidden"))) void* null_device_table[] = {
#define X(number, name) nullptr,
#include "functions.h"
#undef X
};
}

namespace {

constexpr const char* kNames[] = {
#define X(number, name) #name,
#include "functions.h"
#undef X
};

// What returns at once. Arguments are in registers or on the caller's stack, so that one function serves for all.
constexpr const char* kDoNothing[] = {
    "cuLaunchKernel",       "cuLaunchKernelEx",     "cuLaunchCooperativeKernel",
    "cuMemcpyAsync",        "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async",      "cuMemsetD16Async",
    "cuMemsetD32Async",     "cuEventRecord",        "cuEventRecordWithFlags",
    "cuEventQuery",         "cuEventSynchronize",   "cuStreamWaitEvent",
    "cuStreamQuery",        "cuStreamSynchronize",  "cuCtxSynchronize",
    "cuMemFreeAsync",
};

CUresult do_nothing() {
  return CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr* out, size_t bytes, CUstream) {
  static std::atomic<CUdeviceptr> next{CUdeviceptr{1} << 40};
  *out = next.fetch_add((bytes + 511) / 512 * 512);
  return CUDA_SUCCESS;
}

/// The C library's: libgpuslice is in front of it with one that leads back to its wrappers.
void* next_dlsym(void* handle, const char* name) {
  using Dlsym = void* (*)(void*, const char*);
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5"}) {
    if (void* found = dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<Dlsym>(found)(handle, name);
  }
  return nullptr;
}

__attribute__((constructor)) void fill() {
  const char* path = std::getenv("NULL_DEVICE_DRIVER");
  void* driver = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!driver) {
    std::fprintf(stderr, "null device: %s\n", path ? dlerror() : "NULL_DEVICE_DRIVER is not set");
    std::abort();
  }
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    null_device_table[i] = next_dlsym(driver, kNames[i]);
    for (const char* name : kDoNothing)
      if (std::strcmp(name, kNames[i]) == 0) null_device_table[i] = reinterpret_cast<void*>(&do_nothing);
    if (std::strcmp("cuMemAllocAsync", kNames[i]) == 0) null_device_table[i] = reinterpret_cast<void*>(&allocate);
  }
}

}  // namespace
