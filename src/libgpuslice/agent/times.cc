// When launches ran, and what their block-tasks took.
#include <algorithm>

#include "libgpuslice/agent/agent.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::ptx::HostSlot;

namespace {

constexpr std::uint64_t kAtOnceNs = 20'000;

}  // namespace

/// Whether it had the same workers all the time, but for those that started on SMs where they may not be and left at
/// once.
bool Agent::undisturbed(const Launch& launch, const HostSlot& host) {
  return launch.launched == launch.args.workers && ipc::load(host.left_ns) < ipc::load(host.start_ns) + kAtOnceNs;
}

/// From when on it had the same workers on so many SMs until its end; CLOCK_MONOTONIC. 0: it was disturbed, or that is
/// not known. A launch whose turn came later than its issue had its holder alone until the agent sent all the others.
Agent::Stretch Agent::undisturbed_stretch(const Launch& launch, const HostSlot& host) const {
  const std::uint64_t start = ipc::load(host.start_ns), left = ipc::load(host.left_ns);
  const auto on_host = [this](std::uint64_t gpu_ns) { return gpu_ns + static_cast<std::uint64_t>(clocks_.ns()); };
  if (undisturbed(launch, host)) return {on_host(start), gpuctl::range_size(launch.args.range)};
  const bool only_once = launch.given_ns != 0 && launch.evictions == 0;
  if (!only_once || (left != 0 && on_host(left) > launch.given_ns + kAtOnceNs)) return {};
  return {launch.given_ns, gpuctl::range_size(launch.topped_up_for)};
}

/// Workers of a launch on so many SMs.
std::uint32_t Agent::workers_on(const Launch& launch, std::uint32_t sms) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(launch.args.tasks, std::uint64_t{sms} * launch.per_sm));
}

/// Follows how many workers a launch that runs has.
void Agent::watch_work(Launch& launch, const HostSlot& host, std::uint32_t allowed) {
  const bool seen_before = launch.work.known();
  if (!seen_before && !clocks_.known()) return;  // who knows when it started
  if (!seen_before) {
    launch.work.set(workers_on(launch, gpuctl::range_size(launch.args.range)),
                    ipc::load(host.start_ns) + static_cast<std::uint64_t>(clocks_.ns()));
  }
  launch.work.set(workers_on(launch, gpuctl::range_size(allowed)), monotonic_ns());
}

// How long a worker is at one block-task, as an average over all, whether it had the same workers all the time or not.
// If nobody saw it run, what one leader measured, whose warp may be favoured or starved on its SM: that can be off by
// ten times.
double Agent::task_time(const Launch& launch, const HostSlot& host, const Stretch& stretch) const {
  const std::uint64_t done = ipc::load(host.done_ns) + static_cast<std::uint64_t>(clocks_.ns());
  if (stretch.from_ns != 0 && done > stretch.from_ns)
    return static_cast<double>(done - stretch.from_ns) * workers_on(launch, stretch.sms) / launch.args.tasks;
  return launch.work.known() ? launch.work.until(done) / launch.args.tasks : ipc::load(host.task_ns);
}

}  // namespace gpuslice
