// A libcuda.so.1 in front of the software GPU's, NULL_DEVICE_DRIVER (a path), on which whatever a program does in a
// loop is done at once: launches, copies, events and waits return success and do nothing. All other functions are those
// of the software GPU, graphs too, whose kernels may have workers that must run. Under callgrind it shows how many
// instructions libgpuslice adds to a call (count.py).
//
// While null_device_busy is set, streams are at work as those of a GPU are: the program's thread sees them so from a
// launch or a copy to its next wait, other threads always. What is counted would depend else on how often others look,
// and on how long launches are apart, which a slow or a busy machine decides.
//
// Calls come here through null_device_x86_64.S: a jump through the table below.
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

extern "C" {
/// The function behind each exported name.
__attribute__((visibility("hidden"))) void* null_device_table[] = {
#define X(number, name) nullptr,
#include "functions.h"
#undef X
};

__attribute__((visibility("default"))) std::atomic<bool> null_device_busy;
}

namespace {

constexpr const char* kNames[] = {
#define X(number, name) #name,
#include "functions.h"
#undef X
};

bool g_at_work;  // of the program's thread

bool is_programs_thread() {
  return gettid() == getpid();
}

CUresult work() {
  if (null_device_busy && is_programs_thread()) g_at_work = true;
  return CUDA_SUCCESS;
}

CUresult wait() {
  if (is_programs_thread()) g_at_work = false;
  return CUDA_SUCCESS;
}

CUresult do_nothing() {
  return CUDA_SUCCESS;
}

CUresult query_stream() {
  return null_device_busy && (g_at_work || !is_programs_thread()) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult query_event() {
  return null_device_busy && !is_programs_thread() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
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
  // Arguments are in registers or on the caller's stack, so one function serves for calls of any kind.
  const std::pair<std::vector<std::string_view>, void*> instead[] = {
      {{"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuMemcpyAsync", "cuMemcpyHtoDAsync_v2",
        "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async"},
       reinterpret_cast<void*>(&work)},
      {{"cuEventSynchronize", "cuStreamSynchronize", "cuCtxSynchronize"}, reinterpret_cast<void*>(&wait)},
      {{"cuEventRecord", "cuEventRecordWithFlags", "cuStreamWaitEvent", "cuMemFreeAsync"},
       reinterpret_cast<void*>(&do_nothing)},
      {{"cuStreamQuery"}, reinterpret_cast<void*>(&query_stream)},
      {{"cuEventQuery"}, reinterpret_cast<void*>(&query_event)},
      {{"cuMemAllocAsync"}, reinterpret_cast<void*>(&allocate)},
  };
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    null_device_table[i] = next_dlsym(driver, kNames[i]);
    for (const auto& [names, function] : instead)
      if (std::ranges::find(names, kNames[i]) != names.end()) null_device_table[i] = function;
  }
}

}  // namespace
