#include "libgpuslice/agent/eviction_watch.h"

#include <algorithm>
#include <utility>

#include "libgpuslice/agent/usage_counters.h"
#include "libgpuslice/agent/worker_counts.h"
#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::ptx::HostSlot;

void EvictionWatch::start_from(std::uint32_t epoch) {
  epoch_ = epoch;
  granted_ = context_.view.granted();
}

void EvictionWatch::follow_grant(std::uint32_t epoch_seen) {
  if (epoch_seen == epoch_) return;
  epoch_ = epoch_seen;
  const std::uint32_t granted = context_.view.granted();
  const std::uint64_t decided_ns = ipc::load(page_.grant()->decided_ns);
  debug("granted %u SMs %llu us after the decision", granted,
        static_cast<unsigned long long>((monotonic_ns() - decided_ns) / 1000));
  if (granted < granted_) {
    evicting_ = true;
    decided_ns_ = decided_ns;
    remaining_ = Remaining::kUnknown;
  }
  granted_ = granted;
  context_.limits.divide_if_shared();
}

// The measured time ends when this thread, which spins meanwhile, sees that the last worker posted HostSlot::left_ns.
// That is a little later than the worker really left.
void EvictionWatch::look(std::uint32_t epoch_seen) {
  if (!page_.grant()) return;
  follow_grant(epoch_seen);
  std::uint32_t holding = 0;
  std::uint64_t latest_left = 0;
  std::vector<Looked> running;
  context_.book.visit_heads([&](Launch& head, const Stream& stream) {
    const std::uint32_t allowed = context_.limits.allowed(stream);
    const HostSlot& host = context_.book.host(head);
    latest_left = std::max(latest_left, ipc::load(host.left_ns));
    if (!runs(host)) return;
    times_.watch_work(head, host, allowed);
    const std::uint32_t sms = (present(head, host) + head.per_sm - 1) / head.per_sm;
    holding += evicting_ ? sms : std::min(sms, gpuctl::range_size(allowed));  // workers that wait for an SM hold none
    running.push_back({head.slot, allowed});
  });
  if (latest_left > latest_left_) {
    latest_left_ = latest_left;
    left_seen_ns_ = monotonic_ns();
  }
  ipc::Usage& out = *page_.usage();
  ipc::store(out.holding, std::min(holding, context_.view.sms()));
  if (evicting_ && running.empty()) remaining_ = Remaining::kNone;
  if (evicting_ && remaining_ != Remaining::kNone) {
    if (remaining_ != Remaining::kAsked) looked_ = std::move(running);
    return;
  }
  if (evicting_ && left_seen_ns_ > decided_ns_) record(out, left_seen_ns_ - decided_ns_);
  const bool applied = std::exchange(evicting_, false);
  ipc::store(out.applied_epoch, epoch_);
  if (applied) Client::get().kick();  // other clients wait for these SMs
}

void EvictionWatch::look_for_remaining(CUstream stream) {
  if (!evicting_ || looked_.empty()) return;
  const Slots& slots = context_.book.slots();
  if (remaining_ != Remaining::kAsked) {
    looked_.resize(std::min<std::size_t>(looked_.size(), Slots::kCopies));
    for (std::uint32_t i = 0; i < looked_.size(); ++i) {
      if (slots.copy_here(i, looked_[i].slot, stream) != CUDA_SUCCESS) return;
    }
    remaining_ = Remaining::kAsked;
    return;
  }
  const CUresult copied = driver().cuStreamQuery(stream);
  if (copied == CUDA_ERROR_NOT_READY) return;
  bool none = true;  // if the copies fail, nothing is to wait for these workers
  if (copied != CUDA_SUCCESS) looked_.clear();
  for (std::uint32_t i = 0; i < looked_.size(); ++i) {
    none &= !slots.here_outside(i, looked_[i].allowed);
  }
  remaining_ = none ? Remaining::kNone : Remaining::kUnknown;
}

void EvictionWatch::record(ipc::Usage& out, std::uint64_t took_ns) const {
  debug("eviction to %u SMs took %llu us", granted_, static_cast<unsigned long long>(took_ns / 1000));
  add<std::uint64_t>(out.evictions, 1);
  ipc::store(out.evict_ns_last, took_ns);
  add(out.evict_ns_sum, took_ns);
  context_.book.visit_heads([&](Launch& head, const Stream&) {
    if (!ipc::load(context_.book.host(head).started)) return;
    ++head.measured.evictions;
    head.measured.evict_ns += took_ns;
  });
  if (took_ns > out.evict_ns_max) ipc::store(out.evict_ns_max, took_ns);
  count_in(out.evict_us_log2, took_ns);
}

}  // namespace gpuslice
