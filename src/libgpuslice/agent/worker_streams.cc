#include "libgpuslice/agent/worker_streams.h"

#include <algorithm>

#include "libgpuslice/base/driver.h"

namespace gpuslice {

bool WorkerStreams::make(int priority) {
  return std::all_of(streams_.begin(), streams_.end(), [priority](One& one) {
    return driver().cuStreamCreateWithPriority(&one.stream, CU_STREAM_NON_BLOCKING, priority) == CUDA_SUCCESS;
  });
}

CUstream WorkerStreams::use(One& one, const void* launch) {
  one.launch = launch;
  one.taken = ++taken_;
  return one.stream;
}

CUstream WorkerStreams::take(const void* launch) {
  std::array<One*, kStreams> order;
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = &streams_[(next_ + i) % kStreams];
  std::ranges::stable_sort(order, {}, &One::times_stuck);
  One* busy = nullptr;
  for (One* one : order) {
    if (driver().cuStreamQuery(one->stream) == CUDA_SUCCESS) {
      next_ = static_cast<std::size_t>(one - streams_.data()) + 1;
      one->stuck = false;
      return use(*one, launch);
    }
    if (!busy && !one->stuck) busy = one;
  }
  ++next_;
  return busy ? use(*busy, launch) : nullptr;
}

void WorkerStreams::stuck(const void* launch) {
  One* latest = nullptr;
  for (One& one : streams_) {
    if (one.launch != launch) continue;
    if (latest == nullptr || one.taken > latest->taken) latest = &one;
  }
  if (latest == nullptr) return;
  if (!latest->stuck) ++latest->times_stuck;
  for (One& one : streams_) one.stuck |= one.launch == launch;
}

bool WorkerStreams::all_idle() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const One& one) { return driver().cuStreamQuery(one.stream) == CUDA_SUCCESS; });
}

}  // namespace gpuslice
