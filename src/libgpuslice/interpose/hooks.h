// The functions that libgpuslice puts in front of the driver's. Each is exported under the driver's name, so the linker
// finds it first when the library is preloaded or linked. dlsym and cuGetProcAddress return it for that name too.
#pragma once

#include <cuda.h>

#include <string_view>

#include "libgpuslice/base/nothrow.h"

namespace gpuslice {

/// One wrapped function: a row of the table in interpose.cc.
struct Hook {
  std::string_view exported;  ///< as libcuda exports it: "cuMemFree_v2", "cuLaunchKernel_ptsz"
  std::string_view symbol;    ///< the name that cuGetProcAddress gets: "cuMemFree"
  int since;                  ///< CUDA version from which that symbol means this function
  bool per_thread;            ///< the variant whose stream 0 is the per-thread default stream
  void* wrapper;
};

/// The wrapper for an exported name; null if there is none.
void* find_hook(std::string_view exported);
/// The wrapper that cuGetProcAddress should return; null if there is none.
void* find_hook(std::string_view symbol, int cuda_version, bool per_thread);

/// Starts the client if the driver is initialised and kernels are to be managed. Called at cuInit and at a later
/// attachment.
void start_client_if_initialised();

}  // namespace gpuslice

#define GPUSLICE_HOOK extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
