// What a policy for jobs is told: which launch is the head now (ipc::Head), and how launches ended (ipc::Record). Does
// nothing unless the daemon asks for it (Grant::jobs).
//
// A client is one job on a device: its oldest outstanding launch there, in whichever stream. The grant belongs to the
// client, so launches in its other streams share the SMs that the head is given. A launch in original form is a job
// too, as far as it is known which of those is the oldest (opaque.h).
#include <algorithm>
#include <mutex>

#include "ipc/stub_map.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/launch/context.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::ptx::HostSlot;

namespace {

std::uint32_t whole(double ns) {
  return static_cast<std::uint32_t>(std::clamp(ns, 0.0, 4e9));
}

/// The agents of all contexts write to one ring.
std::mutex ring_mutex;

/// Calls fill(record) for the next place in the ring and publishes it. Drops it if the daemon does not keep up.
template <class Fill>
void append_record(Fill fill) {
  ipc::Stub& stub = *Client::get().stub();
  std::lock_guard lock(ring_mutex);
  const std::uint32_t number = ipc::load(stub.records_written);
  if (number - ipc::load(stub.records_read) >= ipc::kRecords) return;
  fill(ipc::record_at(stub, number));
  ipc::store(stub.records_written, number + 1);
}

}  // namespace

bool Context::tell_head(std::uint32_t wanted) {
  const Launch* oldest = nullptr;
  for (const Stream* stream : active_) {
    const Launch* front = stream->outstanding.front().get();
    if (!oldest || front->number < oldest->number) oldest = front;
  }
  const OpaqueJob* opaque = opaque_head(oldest);
  if (opaque && opaque->issued_ns != told_opaque_ns_) {
    told_opaque_ns_ = opaque->issued_ns;
    told_opaque_ = ++launches_;
  }
  ipc::Head& out = Client::get().stub()->head[view_.device_index()];
  const std::uint32_t version = ipc::load(out.version);
  ipc::store(out.version, version | 1);
  // The version must be odd before anything else changes.
  std::atomic_thread_fence(std::memory_order_release);
  if (opaque) {
    ipc::store(out.kernel, opaque->kernel);
    ipc::store(out.issued_ns, opaque->issued_ns);
    ipc::store(out.total, opaque->blocks);
    ipc::store(out.claimed, 0u);
    ipc::store(out.threads, opaque->threads);
    ipc::store(out.shared, opaque->shared);
    ipc::store(out.per_sm, 1u);
    ipc::store(out.task_ns, 0u);
  } else if (oldest) {
    const LaunchConfig& config = oldest->config;
    ipc::store(out.kernel, hash_of(*oldest->instance->kernel));
    ipc::store(out.issued_ns, oldest->issued_ns);
    ipc::store(out.total, oldest->args.tasks);
    ipc::store(out.claimed, std::min(ipc::load(slots_.host(oldest->slot).progress), oldest->args.tasks));
    ipc::store(out.threads, config.threads());
    ipc::store(out.shared, config.shared);
    ipc::store(out.per_sm, oldest->per_sm);
    ipc::store(out.task_ns, whole(oldest->instance->task_ns));
  }
  ipc::store(out.original, opaque ? 1u : 0u);
  const std::uint64_t head = opaque ? told_opaque_ : oldest ? oldest->number : 0;
  ipc::store(out.launch, head);
  ipc::store(out.version, (version | 1) + 1);
  const std::uint64_t before = std::exchange(told_head_, head);
  return head != before && (head == 0 || before == 0 || wanted == ipc::kReportEachJob);
}

/// The launch in original form that is the client's job, or null if `oldest` is. Once a launch in original form has
/// begun, everything before it in its stream is complete.
const OpaqueJob* Context::opaque_head(const Launch* oldest) const {
  const OpaqueJob* job = at_gate_ ? &at_gate_->job : &opaque_job_;
  if (!at_gate_ && (opaque_demand_ == 0 || job->issued_ns == 0)) job = nullptr;
  if (!job || !oldest) return job;
  return ipc::load(slots_.host(oldest->slot).started) || oldest->issued_ns < job->issued_ns ? nullptr : job;
}

/// `whole_from_ns`: from when on the launch had the whole device until its end, CLOCK_MONOTONIC; 0: it had only a part,
/// or was disturbed.
void Context::record(const Launch& launch, std::int64_t clock_offset, std::uint64_t whole_from_ns) {
  const HostSlot& host = slots_.host(launch.slot);
  const auto on_host = [&](const std::uint64_t& gpu_ns) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(ipc::load(gpu_ns)) + clock_offset);
  };
  append_record([&](ipc::Record& out) {
    out.kernel = hash_of(*launch.instance->kernel);
    out.issued_ns = launch.issued_ns;
    out.start_ns = whole_from_ns != 0 ? whole_from_ns : on_host(host.start_ns);
    out.done_ns = on_host(host.done_ns);
    out.evict_ns = launch.evict_ns;
    out.evictions = std::min(launch.evictions, 0xffffu) |
                    static_cast<std::uint32_t>(view_.device_index()) << ipc::kRecordDeviceShift |
                    (whole_from_ns != 0 ? ipc::kWholeDevice : 0);
    out.total = launch.args.tasks;
    out.threads = launch.config.threads();
    out.shared = launch.config.shared;
    out.per_sm = launch.per_sm;
    out.task_ns = whole(launch.instance->task_ns);
  });
}

void Context::record(const TimedLaunch& launch) const {
  if (view_.jobs() == ipc::kNoJobs) return;
  append_record([&](ipc::Record& out) {
    out.kernel = launch.job.kernel;
    out.issued_ns = launch.job.issued_ns;
    out.start_ns = launch.done_ns - std::min(launch.gpu_ns, launch.done_ns);
    out.done_ns = launch.done_ns;
    out.evict_ns = 0;
    out.evictions = std::min(launch.sms, 0xffffu) |
                    static_cast<std::uint32_t>(view_.device_index()) << ipc::kRecordDeviceShift | ipc::kOriginalForm;
    out.total = launch.job.blocks;
    out.threads = launch.job.threads;
    out.shared = launch.job.shared;
    out.per_sm = 1;
    out.task_ns = 0;
  });
}

}  // namespace gpuslice
