// Identifies a stream of the program.
#pragma once

#include <cuda.h>
#include <pthread.h>

#include <utility>

namespace gpuslice {

/// The handle and its owner: each thread has its own per-thread default stream behind the same handle.
using StreamKey = std::pair<CUstream, unsigned long>;

/// For the calling thread.
inline StreamKey stream_key(CUstream handle) {
  return {handle, handle == CU_STREAM_PER_THREAD ? static_cast<unsigned long>(pthread_self()) : 0};
}

}  // namespace gpuslice
