#include "libgpuslice/worker_streams.h"

#include <algorithm>

#include "libgpuslice/driver.h"

namespace gpuslice {

namespace {

/// What is at the front of its queue after so long gets on.
constexpr std::uint64_t kStuckNs = 2'000'000;

}  // namespace

bool WorkerStreams::make(int priority) {
  return std::all_of(streams_.begin(), streams_.end(), [priority](One& one) {
    return driver().cuEventCreate && driver().cuStreamCreateWithPriority(&one.stream, CU_STREAM_NON_BLOCKING, priority) == CUDA_SUCCESS &&
           driver().cuEventCreate(&one.reached, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
  });
}

void WorkerStreams::look(std::uint64_t now_ns) {
  for (One& one : streams_) {
    one.stuck = false;
    if (!one.launch || now_ns - one.sent_ns < kStuckNs) continue;
    one.stuck = driver().cuEventQuery(one.reached) == CUDA_ERROR_NOT_READY;
    if (!one.stuck) one.launch = nullptr;
  }
}

CUstream WorkerStreams::take() {
  CUstream busy = nullptr;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const std::size_t number = (next_ + i) % streams_.size();
    One& one = streams_[number];
    if (driver().cuStreamQuery(one.stream) == CUDA_SUCCESS) {
      next_ = number + 1;
      return one.stream;
    }
    if (!busy && !one.stuck) busy = one.stream;
  }
  ++next_;
  return busy;
}

void WorkerStreams::sends(CUstream stream, const void* launch, std::uint32_t workers, std::uint64_t now_ns) {
  const auto found = std::find_if(streams_.begin(), streams_.end(), [stream](const One& one) { return one.stream == stream; });
  if (found == streams_.end()) return;
  found->launch = driver().cuEventRecord(found->reached, stream) == CUDA_SUCCESS ? launch : nullptr;
  found->workers = workers;
  found->sent_ns = now_ns;
  found->stuck = false;
}

std::uint32_t WorkerStreams::stuck(const void* launch) const {
  std::uint32_t workers = 0;
  for (const One& one : streams_) {
    if (one.stuck && one.launch == launch) workers += one.workers;
  }
  return workers;
}

bool WorkerStreams::all_idle() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const One& one) { return driver().cuStreamQuery(one.stream) == CUDA_SUCCESS; });
}

}  // namespace gpuslice
