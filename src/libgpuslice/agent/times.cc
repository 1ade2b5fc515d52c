// When launches ran, and what their block-tasks took.
#include <algorithm>

#include "libgpuslice/agent/agent.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::ptx::HostSlot;

namespace {

constexpr std::uint64_t kAtOnceNs = 20'000;

}  // namespace

/// Whether the launch had the same workers all the time. Workers that started on SMs that are not allowed and left at
/// once do not count.
bool Agent::undisturbed(const Launch& launch, const HostSlot& host) {
  return launch.launched == launch.args.workers && ipc::load(host.left_ns) < ipc::load(host.start_ns) + kAtOnceNs;
}

/// From when on the launch had the same workers until its end, CLOCK_MONOTONIC, and on how many SMs. from_ns is 0 if
/// the launch was disturbed or this is not known. A launch that was granted nothing when it was issued had only its
/// holder, until the agent sent all other workers.
Agent::Stretch Agent::undisturbed_stretch(const Launch& launch, const HostSlot& host) const {
  const std::uint64_t start = ipc::load(host.start_ns), left = ipc::load(host.left_ns);
  const auto on_host = [this](std::uint64_t gpu_ns) { return gpu_ns + static_cast<std::uint64_t>(clocks_.ns()); };
  if (undisturbed(launch, host)) return {on_host(start), gpuctl::range_size(launch.args.range)};
  const bool only_once = launch.given_ns != 0 && launch.evictions == 0;
  if (!only_once || (left != 0 && on_host(left) > launch.given_ns + kAtOnceNs)) return {};
  return {launch.given_ns, gpuctl::range_size(launch.topped_up_for)};
}

/// How many workers of the launch fit on this many SMs.
std::uint32_t Agent::workers_on(const Launch& launch, std::uint32_t sms) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(launch.args.tasks, std::uint64_t{sms} * launch.per_sm));
}

/// Follows how many workers a running launch has.
void Agent::watch_work(Launch& launch, const HostSlot& host, std::uint32_t allowed) {
  const bool seen_before = launch.work.known();
  if (!seen_before && !clocks_.known()) return;  // its start is not known on the host's clock
  if (!seen_before) {
    launch.work.set(workers_on(launch, gpuctl::range_size(launch.args.range)),
                    ipc::load(host.start_ns) + static_cast<std::uint64_t>(clocks_.ns()));
  }
  launch.work.set(workers_on(launch, gpuctl::range_size(allowed)), monotonic_ns());
}

// How long a worker takes for one block-task, as an average over all block-tasks, whether the launch was disturbed or
// not. If the agent did not see the launch run, this is what one leader measured. Its warp may be favoured or starved
// on its SM, so that can be off by a factor of ten.
double Agent::task_time(const Launch& launch, const HostSlot& host, const Stretch& stretch) const {
  const std::uint64_t done = ipc::load(host.done_ns) + static_cast<std::uint64_t>(clocks_.ns());
  if (stretch.from_ns != 0 && done > stretch.from_ns)
    return static_cast<double>(done - stretch.from_ns) * workers_on(launch, stretch.sms) / launch.args.tasks;
  return launch.work.known() ? launch.work.until(done) / launch.args.tasks : ipc::load(host.task_ns);
}

}  // namespace gpuslice
