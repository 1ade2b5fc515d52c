// Growing: adds workers to launches that may use more SMs than they have workers for.
#include <algorithm>
#include <cstring>
#include <utility>

#include "libgpuslice/agent/agent.h"
#include "libgpuslice/driver/debug.h"
#include "libgpuslice/driver/driver.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::ptx::HostSlot;
using gpuctl::ptx::LaunchArgs;

namespace {

/// No workers are added while less than one in this many is missing.
constexpr std::uint64_t kMissable = 16;
/// The agent does not go to sleep for long before a try that is this near, or until a launch has had this long to
/// start.
constexpr std::uint64_t kSoonNs = 1'000'000;

}  // namespace

std::vector<Agent::TopUp> Agent::plan_top_ups() {
  std::vector<TopUp> orders;
  const std::uint64_t now = monotonic_ns();
  wants_workers_ = false;
  const bool takes_turns = c_.view_.jobs() != ipc::kNoJobs;
  const auto look_at = [&](Launch& head, std::uint32_t allowed) {
    const HostSlot& host = c_.slots_.host(head.slot);
    if (!head.issued.load(std::memory_order_acquire) || head.failed || ipc::load(host.done)) return;
    const std::uint64_t capacity = std::uint64_t{gpuctl::range_size(allowed)} * head.per_sm;
    const std::uint32_t claimed = std::min(ipc::load(host.progress), head.args.total);
    const std::uint64_t chunks = (std::uint64_t{head.args.total - claimed} + head.chunk - 1) / head.chunk;
    const std::uint64_t target = std::min(capacity, chunks);
    const std::uint32_t allowed_before = head.tries.allow(allowed);
    wants_workers_ |= watch_return(head, allowed_before, allowed, target);
    // The daemon has just been told of this launch and may grant something at any moment.
    wants_workers_ |= takes_turns && capacity == 0 && now - head.issued_ns < kSoonNs;
    if (head.guarded()) {  // its workers leave after one block-task, so some are soon missing again
      if (std::exchange(head.claimed, claimed) != claimed) head.tries.try_again();
      wants_workers_ |= target > 0 && present(head) <= capacity;
    }
    const std::uint64_t chunk_ns = static_cast<std::uint64_t>(head.instance->task_ns * head.chunk);
    const std::uint32_t overdue = head.sent.overdue(ipc::load(host.entered), 2 * chunk_ns, now);
    if (overdue > 0) streams_.stuck(&head);
    const std::uint32_t absent = ipc::load(host.resting) + overdue;
    const std::uint32_t at_work = present(head) - std::min(present(head), absent);
    if (target <= at_work || target - at_work < target / kMissable) return;
    if (!ipc::load(host.started)) {  // its turn in the stream has not come, but may come at any moment
      if (head.wanted_ns == 0) head.wanted_ns = now;
      wants_workers_ |= now - head.wanted_ns < kSoonNs;
      return;
    }
    wants_workers_ |= now + kSoonNs > head.tries.next_ns();
    if (now < head.tries.next_ns()) return;
    head.tries.tried(now);
    head.topped_up_for = allowed;
    orders.push_back({&head, static_cast<std::uint32_t>(target - at_work) + 2 * c_.view_.idle_sms() * head.per_sm});
  };
  for (const Stream* stream : c_.active_) {
    const std::uint32_t allowed = c_.allowed(*stream);
    stream->visit_heads([&](Launch& head) { look_at(head, allowed); });
  }
  return orders;
}

// `launch` stays valid without the mutex, since only the agent deletes launches.
void Agent::top_up(const TopUp& order) {
  Launch& launch = *order.launch;
  CUstream stream = streams_.take(order.launch);
  std::uint32_t& lone = c_.slots_.host(launch.slot).lone;
  if (blocked_.tried(stream != nullptr, monotonic_ns())) {
    debug("the program's streams hold up those for workers: its launches keep their original form for a while");
    c_.crowded_until_ns_.store(monotonic_ns() + Context::kCrowdedForNs);
  }
  if (!stream && !ipc::load(lone))
    debug("no workers for %s: all streams for them are stuck", launch.instance->kernel->name.c_str());
  ipc::store(lone, std::uint32_t{stream == nullptr});
  if (!stream) return;
  std::vector<std::byte> params = launch.params;
  LaunchArgs args = launch.args;
  args.flags |= gpuctl::ptx::kAgentGrid;
  args.range = launch.topped_up_for;
  std::memcpy(params.data() + launch.instance->kernel->args_offset, &args, sizeof args);
  const CUresult result = Context::issue(launch, stream, order.workers, params);
  if (result != CUDA_SUCCESS) {
    debug("adding %u workers to %s failed: %d", order.workers, launch.instance->kernel->name.c_str(), result);
    ipc::store(lone, 1u);
    c_.note_result(result);
    return;
  }
  debug("adds %u workers to %s: %u of %u left, allowed on %u SMs", order.workers, launch.instance->kernel->name.c_str(),
        launch.launched - present(launch), launch.launched, gpuctl::range_size(launch.topped_up_for));
  topped_up_ = true;
  std::lock_guard lock(c_.mutex_);
  const bool had_holder_alone = launch.launched == launch.args.workers && gpuctl::range_size(launch.args.range) == 0;
  launch.given_ns = had_holder_alone ? monotonic_ns() : 0;
  launch.launched += order.workers;
  launch.sent.send(order.workers, monotonic_ns());
}

}  // namespace gpuslice
