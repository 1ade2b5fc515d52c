#include "libgpuslice/agent/return_watch.h"

#include <algorithm>

#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"

namespace gpuslice {

namespace {
/// A launch that has not come back after this time waits for something else.
constexpr std::uint64_t kLongestReturnNs = 20'000'000;
}  // namespace

bool ReturnWatch::look(Launch& head, std::uint32_t before, std::uint32_t allowed, std::uint64_t workers) {
  const bool granted = gpuctl::range_size(allowed) > 0;
  if (gpuctl::range_size(before) == 0 && granted && head.measured.evictions > 0 && page_.grant()) {
    launch_ = &head;
    since_ns_ = gpuctl::ipc::load(page_.grant()->decided_ns);
    workers_ = static_cast<std::uint32_t>((workers + 1) / 2);
    asked_ = false;
  }
  if (launch_ != &head) return false;
  if (!granted) has_returned();
  return granted;
}

void ReturnWatch::count_workers(CUstream stream) {
  if (!launch_) return;
  const Slots& slots = context_.book.slots();
  if (!asked_) {
    asked_ = slots.copy_here(0, launch_->slot, stream) == CUDA_SUCCESS;
    return;
  }
  if (driver().cuStreamQuery(stream) != CUDA_SUCCESS) return;
  asked_ = false;
  if (slots.here(0) >= workers_ || monotonic_ns() - since_ns_ > kLongestReturnNs) has_returned();
}

/// The launch has returned, is over, or must leave again.
void ReturnWatch::has_returned() {
  const std::uint64_t now = monotonic_ns(), took_ns = now - std::min(now, since_ns_);
  debug("%s came back in %llu us", launch_->instance->kernel->name.c_str(),
        static_cast<unsigned long long>(took_ns / 1000));
  launch_->measured.evict_ns += took_ns;
  launch_ = nullptr;
}

}  // namespace gpuslice
