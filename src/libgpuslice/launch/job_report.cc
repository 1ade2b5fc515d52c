#include "libgpuslice/launch/job_report.h"

#include <mutex>

#include "ipc/stub_map.h"
#include "libgpuslice/client/client.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

/// The agents of all contexts write to one ring.
std::mutex ring_mutex;

/// Writes the record to the next place in the ring and publishes it. Drops it if the daemon does not keep up.
void append(const ipc::Record& record) {
  ipc::Stub& stub = *Client::get().stub();
  std::lock_guard lock(ring_mutex);
  const std::uint32_t number = ipc::load(stub.records_written);
  if (number - ipc::load(stub.records_read) >= ipc::kRecords) return;
  ipc::record_at(stub, number) = record;
  ipc::store(stub.records_written, number + 1);
}

/// Record::evictions: a number below 65,536, the device, and flags.
std::uint32_t packed(std::uint32_t number, const GrantView& view, std::uint32_t flags) {
  return std::min(number, 0xffffu) | static_cast<std::uint32_t>(view.device_index()) << ipc::kRecordDeviceShift | flags;
}

std::uint16_t narrow(std::uint32_t number) {
  return static_cast<std::uint16_t>(std::min(number, 0xffffu));
}

}  // namespace

void record(const GrantView& view, const Launch& launch, const gpuctl::ptx::HostSlot& host, std::int64_t clock_offset,
            std::uint64_t whole_from_ns) {
  const auto on_host = [&](const std::uint64_t& gpu_ns) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(ipc::load(gpu_ns)) + clock_offset);
  };
  ipc::Record out{};
  out.kernel = hash_of(*launch.instance->kernel);
  out.issued_ns = launch.issued_ns;
  out.start_ns = whole_from_ns != 0 ? whole_from_ns : on_host(host.start_ns);
  out.done_ns = on_host(host.done_ns);
  out.evict_ns = launch.measured.evict_ns;
  out.evictions = packed(launch.measured.evictions, view, whole_from_ns != 0 ? ipc::kWholeDevice : 0);
  out.total = launch.args.tasks;
  out.threads = narrow(launch.config.threads());
  out.shared = launch.config.shared;
  out.per_sm = narrow(launch.per_sm);
  out.input_kib = ipc::to_kib(launch.input_bytes);
  out.task_ns = whole_ns(launch.instance->task_ns);
  append(out);
}

void record(const GrantView& view, const TimedLaunch& launch) {
  if (view.jobs() == ipc::kNoJobs) return;
  ipc::Record out{};
  out.kernel = launch.job.kernel;
  out.issued_ns = launch.job.issued_ns;
  out.start_ns = launch.done_ns - std::min(launch.gpu_ns, launch.done_ns);
  out.done_ns = launch.done_ns;
  out.evictions = packed(launch.sms, view, ipc::kOriginalForm);
  out.total = launch.job.blocks;
  out.threads = narrow(launch.job.threads);
  out.shared = launch.job.shared;
  out.per_sm = 1;
  out.input_kib = ipc::to_kib(launch.job.input_bytes);
  append(out);
}

}  // namespace gpuslice
