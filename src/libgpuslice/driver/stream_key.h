// Which stream of the program a handle means.
#pragma once

#include <cuda.h>
#include <pthread.h>

#include <utility>

namespace gpuslice {

/// The handle, and whose it is: every thread has a per-thread default stream of its own behind the one handle.
using StreamKey = std::pair<CUstream, unsigned long>;

/// For the calling thread.
inline StreamKey stream_key(CUstream handle) {
  return {handle, handle == CU_STREAM_PER_THREAD ? static_cast<unsigned long>(pthread_self()) : 0};
}

}  // namespace gpuslice
