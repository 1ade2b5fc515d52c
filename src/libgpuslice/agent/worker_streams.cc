#include "libgpuslice/agent/worker_streams.h"

#include <algorithm>

#include "libgpuslice/driver/driver.h"

namespace gpuslice {

bool WorkerStreams::make(int priority) {
  return std::all_of(streams_.begin(), streams_.end(), [priority](One& one) {
    return driver().cuStreamCreateWithPriority(&one.stream, CU_STREAM_NON_BLOCKING, priority) == CUDA_SUCCESS;
  });
}

CUstream WorkerStreams::take(const void* launch) {
  One* busy = nullptr;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    One& one = streams_[(next_ + i) % streams_.size()];
    if (driver().cuStreamQuery(one.stream) == CUDA_SUCCESS) {
      next_ += i + 1;
      one = {.stream = one.stream, .launch = launch};
      return one.stream;
    }
    if (!busy && !one.stuck) busy = &one;
  }
  ++next_;
  if (!busy) return nullptr;
  busy->launch = launch;
  return busy->stream;
}

void WorkerStreams::stuck(const void* launch) {
  for (One& one : streams_) one.stuck |= one.launch == launch;
}

bool WorkerStreams::all_idle() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const One& one) { return driver().cuStreamQuery(one.stream) == CUDA_SUCCESS; });
}

}  // namespace gpuslice
