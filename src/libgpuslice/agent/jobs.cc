// What the agent does for policies for jobs (Grant::jobs). It sees a launch end soon after the end, since another job
// waits for its turn. It also measures the whole cost of an eviction.
#include <algorithm>
#include <utility>

#include "libgpuslice/agent/agent.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/driver/debug.h"
#include "libgpuslice/driver/driver.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::ptx::HostSlot;

namespace {
/// A launch that has not come back after this time waits for something else.
constexpr std::uint64_t kLongestReturnNs = 20'000'000;
}  // namespace

/// How long the agent may nap, so that it sees launches end in time. The caller holds the context's mutex.
std::uint64_t Agent::look_for_ends() {
  const std::uint32_t jobs = c_.view_.jobs();
  // While no other job waits, only the end of the last launch matters.
  if (jobs == ipc::kNoJobs || (jobs == ipc::kTellJobs && c_.outstanding_ != 1)) return UINT64_MAX;
  const std::uint64_t now = monotonic_ns();
  std::uint64_t launch = 0, least = UINT64_MAX;
  for (const Stream* stream : c_.active_) {
    const std::uint32_t sms = gpuctl::range_size(c_.allowed(*stream));
    if (sms == 0) continue;
    stream->visit_heads([&](const Launch& head) {
      const HostSlot& host = c_.slots_.host(head.slot);
      if (!ipc::load(host.started) || ipc::load(host.done)) return;
      const std::uint32_t left = head.args.total - std::min(ipc::load(host.progress), head.args.total);
      const double task_ns = head.instance->task_ns > 0 ? head.instance->task_ns : ipc::load(host.task_ns);
      const auto ns = static_cast<std::uint64_t>(left * task_ns / (static_cast<double>(sms) * head.per_sm));
      if (ns < least) launch = head.number, least = ns;
    });
  }
  return launch == 0 ? UINT64_MAX : naps_.nap_ns(launch, least, now);
}

/// Tells the daemon that workers were added: a turn counts from when Usage::holding shows workers.
void Agent::say_if_at_work() {
  if (std::exchange(topped_up_, false) && c_.view_.jobs() != ipc::kNoJobs) Client::get().kick();
}

// An eviction costs more than the time until the SMs are free: when they are given back, workers must come again. The
// return ends when half of the workers that fit are there. The caller holds the context's mutex. Returns true until
// then.
bool Agent::watch_return(Launch& head, std::uint32_t before, std::uint32_t allowed, std::uint64_t workers) {
  if (gpuctl::range_size(before) == 0 && gpuctl::range_size(allowed) > 0 && head.evictions > 0 && stub_) {
    returning_ = &head;
    return_since_ns_ = ipc::load(stub_->grant[c_.view_.device_index()].decided_ns);
    return_workers_ = static_cast<std::uint32_t>((workers + 1) / 2);
    return_asked_ = false;
  }
  if (returning_ != &head) return false;
  if (gpuctl::range_size(allowed) > 0) return true;
  has_returned();
  return false;
}

/// Reads how many workers are there, by one small copy after another.
void Agent::look_for_return() {
  if (!returning_ || evicting_) return;
  if (!return_asked_) {
    return_asked_ = c_.slots_.copy_here(0, returning_->slot, housekeeping_) == CUDA_SUCCESS;
    return;
  }
  if (driver().cuStreamQuery(housekeeping_) != CUDA_SUCCESS) return;
  return_asked_ = false;
  if (c_.slots_.here(0) >= return_workers_ || monotonic_ns() - return_since_ns_ > kLongestReturnNs) has_returned();
}

/// The launch has returned, is over, or must leave again.
void Agent::has_returned() {
  const std::uint64_t now = monotonic_ns(), took_ns = now - std::min(now, return_since_ns_);
  debug("%s came back in %llu us", returning_->instance->kernel->name.c_str(),
        static_cast<unsigned long long>(took_ns / 1000));
  returning_->evict_ns += took_ns;
  returning_ = nullptr;
}

}  // namespace gpuslice
