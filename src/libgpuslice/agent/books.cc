// What the agent learns from launch blocks: which launches are complete, and whether an eviction has taken effect.
#include <algorithm>
#include <bit>
#include <utility>

#include "libgpuslice/agent/agent.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/driver/debug.h"
#include "libgpuslice/driver/driver.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::ptx::HostSlot;

namespace {

/// Workers that come late to a complete launch post that they left, in no certain order. After this time, with none of
/// the agent's grids running, all of them have left, whatever the last post says.
constexpr std::uint64_t kSurelyGoneNs = 100'000'000;

std::uint32_t log2_bucket(std::uint64_t microseconds, std::size_t buckets) {
  if (microseconds == 0) return 0;
  return std::min<std::uint32_t>(std::bit_width(microseconds) - 1, static_cast<std::uint32_t>(buckets) - 1);
}

template <class T>
void add(T& counter, T more) {
  ipc::store(counter, static_cast<T>(counter + more));  // one writer: this thread
}

/// The client's thread counts launches too (activity.h).
void add_to_launches(ipc::Usage& out, std::uint32_t more) {
  __atomic_fetch_add(&out.launches, std::uint64_t{more}, __ATOMIC_RELAXED);
}

}  // namespace

void Agent::reap() {
  const std::uint64_t now = monotonic_ns();
  if (c_.outstanding_ > 0) {
    if (ipc::Usage* out = c_.view_.usage()) add(out->busy_ns, now - last_reap_ns_);
    last_active_ns_ = now;
  }
  last_reap_ns_ = now;

  if (ipc::Usage* out = c_.view_.usage(); out && c_.launched_as_they_are_.load(std::memory_order_relaxed) > 0)
    add_to_launches(*out, c_.launched_as_they_are_.exchange(0));
  bool heads_changed = false;
  for (Stream* stream : c_.active_) {
    while (!stream->outstanding.empty()) {
      Launch& head = *stream->outstanding.front();
      if (!head.issued.load(std::memory_order_acquire)) break;
      if (!head.failed && !ipc::load(c_.slots_.host(head.slot).done)) break;
      const bool counts = head.counts;
      if (returning_ == &head) has_returned();
      if (head.failed) {
        c_.slots_.give_back(head.slot, false);
      } else {
        complete(head, now);
        head.complete_ns = now;
        c_.leaving_.push_back(std::move(stream->outstanding.front()));
      }
      stream->queued -= counts;
      stream->outstanding.pop_front();
      --c_.outstanding_;
      heads_changed = true;
    }
  }
  if (heads_changed) {
    std::erase_if(c_.active_, [](const Stream* stream) { return stream->outstanding.empty(); });
    std::erase_if(c_.orphans_, [](const auto& stream) { return stream->outstanding.empty(); });
    if (!c_.active_.empty()) c_.divide_among_streams();
    c_.changed_.notify_all();
  }
  // Publishes even without a change, since demand falls with progress.
  if (heads_changed || !c_.active_.empty()) c_.publish_usage();
  std::erase_if(c_.leaving_, [&](const std::unique_ptr<Launch>& launch) {
    const bool all_posted = ipc::load(c_.slots_.host(launch->slot).left) == launch->launched;
    if (!all_posted && !(grids_over_ && now - launch->complete_ns > kSurelyGoneNs)) return false;
    c_.slots_.give_back(launch->slot, true);
    return true;
  });
}

void Agent::complete(const Launch& launch, std::uint64_t now) {
  const HostSlot& host = c_.slots_.host(launch.slot);
  Instance& instance = *launch.instance;
  clocks_.add(launch.issued_ns, ipc::load(host.start_ns), ipc::load(host.done_ns), now);
  const Stretch stretch = undisturbed_stretch(launch, host);
  if (const double task_ns = task_time(launch, host, stretch); task_ns > 0) {
    instance.task_ns = instance.task_ns == 0 ? task_ns : 0.75 * instance.task_ns + 0.25 * task_ns;
    instance.kernel->task_ns = static_cast<std::uint32_t>(instance.task_ns);
  }
  ipc::Usage* out = c_.view_.usage();
  if (!out) return;
  const auto done_ns = static_cast<std::int64_t>(ipc::load(host.done_ns));
  const std::int64_t latency = done_ns + clocks_.ns() - static_cast<std::int64_t>(launch.issued_ns);
  const auto latency_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(latency, 0));
  add_to_launches(*out, 1);
  add<std::uint64_t>(out->block_tasks, launch.args.tasks);
  ipc::store(out->latency_ns_last, latency_ns);
  add(out->latency_us_log2[log2_bucket(latency_ns / 1000, std::size(out->latency_us_log2))], 1u);
  if (c_.view_.jobs() != ipc::kNoJobs)
    c_.record(launch, clocks_.ns(), stretch.sms == c_.view_.sms() ? stretch.from_ns : 0);
}

// Follows the grant, and notices when a shrink has taken effect on the GPU, for the daemon and the user. The measured
// time ends when this thread, which spins meanwhile, sees that the last worker posted HostSlot::left_ns. That is a
// little later than the worker really left.
void Agent::watch_eviction(std::uint32_t epoch_seen) {
  if (!stub_) return;
  const ipc::Grant& grant = stub_->grant[c_.view_.device_index()];
  ipc::Usage& out = stub_->usage[c_.view_.device_index()];
  if (epoch_seen != epoch_) {
    epoch_ = epoch_seen;
    const std::uint32_t granted = c_.view_.granted();
    if (granted < granted_) {
      evicting_ = true;
      decided_ns_ = ipc::load(grant.decided_ns);
      remaining_ = Remaining::kUnknown;
    }
    granted_ = granted;
    c_.divide_if_shared();
  }
  std::uint32_t holding = 0;
  std::uint64_t latest_left = 0;
  std::vector<Looked> running;
  for (const Stream* stream : c_.active_) {
    const std::uint32_t allowed = c_.allowed(*stream);
    stream->visit_heads([&](Launch& head) {
      const HostSlot& host = c_.slots_.host(head.slot);
      latest_left = std::max(latest_left, ipc::load(host.left_ns));
      if (!ipc::load(host.started) || ipc::load(host.done)) return;
      watch_work(head, host, allowed);
      const std::uint32_t sms = (present(head) + head.per_sm - 1) / head.per_sm;
      holding += evicting_ ? sms : std::min(sms, gpuctl::range_size(allowed));  // workers that wait for an SM hold none
      running.push_back({head.slot, allowed});
    });
  }
  if (latest_left > latest_left_) {
    latest_left_ = latest_left;
    left_seen_ns_ = monotonic_ns();
  }
  ipc::store(out.holding, std::min(holding, c_.view_.sms()));
  if (evicting_ && running.empty()) remaining_ = Remaining::kNone;
  if (evicting_ && remaining_ != Remaining::kNone) {
    if (remaining_ != Remaining::kAsked) looked_ = std::move(running);
    return;
  }
  if (evicting_ && left_seen_ns_ > decided_ns_) record_eviction(out, left_seen_ns_ - decided_ns_);
  const bool applied = std::exchange(evicting_, false);
  ipc::store(out.applied_epoch, epoch_);
  if (applied) Client::get().kick();  // other clients wait for these SMs
}

// Reads on which SMs workers are while an eviction is under way, by one round of small copies after another.
void Agent::look_for_remaining() {
  if (!evicting_ || looked_.empty()) return;
  if (remaining_ != Remaining::kAsked) {
    looked_.resize(std::min<std::size_t>(looked_.size(), Slots::kCopies));
    for (std::uint32_t i = 0; i < looked_.size(); ++i) {
      if (c_.slots_.copy_here(i, looked_[i].slot, housekeeping_) != CUDA_SUCCESS) return;
    }
    remaining_ = Remaining::kAsked;
    return;
  }
  const CUresult copied = driver().cuStreamQuery(housekeeping_);
  if (copied == CUDA_ERROR_NOT_READY) return;
  bool none = true;  // if the copies fail, nothing is to wait for these workers
  if (copied != CUDA_SUCCESS) looked_.clear();
  for (std::uint32_t i = 0; i < looked_.size(); ++i) none &= !c_.slots_.here_outside(i, looked_[i].allowed);
  remaining_ = none ? Remaining::kNone : Remaining::kUnknown;
}

void Agent::record_eviction(ipc::Usage& out, std::uint64_t took_ns) {
  debug("eviction to %u SMs took %llu us", granted_, static_cast<unsigned long long>(took_ns / 1000));
  add<std::uint64_t>(out.evictions, 1);
  ipc::store(out.evict_ns_last, took_ns);
  add(out.evict_ns_sum, took_ns);
  for (const Stream* stream : c_.active_) {
    stream->visit_heads([&](Launch& head) {
      if (!ipc::load(c_.slots_.host(head.slot).started)) return;
      ++head.evictions;
      head.evict_ns += took_ns;
    });
  }
  if (took_ns > out.evict_ns_max) ipc::store(out.evict_ns_max, took_ns);
  add(out.evict_us_log2[log2_bucket(took_ns / 1000, std::size(out.evict_us_log2))], 1u);
}

// Workers launched and not known to have left. Some may still wait for an SM.
std::uint32_t Agent::present(const Launch& launch) const {
  return launch.launched - std::min(launch.launched, ipc::load(c_.slots_.host(launch.slot).left));
}

}  // namespace gpuslice
