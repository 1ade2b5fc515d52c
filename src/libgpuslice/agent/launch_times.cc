#include "libgpuslice/agent/launch_times.h"

#include "base/sm_range.h"
#include "ipc/stub_map.h"
#include "libgpuslice/agent/worker_counts.h"
#include "libgpuslice/base/clock.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::ptx::HostSlot;

namespace {

constexpr std::uint64_t kAtOnceNs = 20'000;

/// Whether the launch had the same workers all the time. Workers that started on SMs that are not allowed and left at
/// once do not count.
bool undisturbed(const Launch& launch, const HostSlot& host) {
  return launch.launched == launch.args.workers && ipc::load(host.left_ns) < ipc::load(host.start_ns) + kAtOnceNs;
}

}  // namespace

void LaunchTimes::add(const Launch& launch, const HostSlot& host, std::uint64_t now_ns) {
  clocks_.add(launch.issued_ns, ipc::load(host.start_ns), ipc::load(host.done_ns), now_ns);
}

LaunchTimes::Stretch LaunchTimes::undisturbed_stretch(const Launch& launch, const HostSlot& host) const {
  const std::uint64_t start = ipc::load(host.start_ns), left = ipc::load(host.left_ns);
  if (undisturbed(launch, host)) return {on_host(start), gpuctl::range_size(launch.args.range)};
  const std::uint64_t given_ns = launch.growth.given_ns;
  const bool given_at_once = given_ns != 0 && launch.measured.evictions == 0;
  if (!given_at_once || (left != 0 && on_host(left) > given_ns + kAtOnceNs)) return {};
  return {given_ns, gpuctl::range_size(launch.growth.topped_up_for)};
}

void LaunchTimes::watch_work(Launch& launch, const HostSlot& host, std::uint32_t allowed) const {
  WorkTime& work = launch.measured.work;
  const bool seen_before = work.known();
  if (!seen_before && !clocks_.known()) return;  // its start is not known on the host's clock
  if (!seen_before) {
    work.set(workers_on(launch, gpuctl::range_size(launch.args.range)), on_host(ipc::load(host.start_ns)));
  }
  work.set(workers_on(launch, gpuctl::range_size(allowed)), monotonic_ns());
}

double LaunchTimes::task_time(const Launch& launch, const HostSlot& host, const Stretch& stretch) const {
  const std::uint64_t done = on_host(ipc::load(host.done_ns));
  if (stretch.from_ns != 0 && done > stretch.from_ns)
    return static_cast<double>(done - stretch.from_ns) * workers_on(launch, stretch.sms) / launch.args.tasks;
  const WorkTime& work = launch.measured.work;
  return work.known() ? work.until(done) / launch.args.tasks : ipc::load(host.task_ns);
}

}  // namespace gpuslice
