#include "libgpuslice/agent/top_up.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libgpuslice/agent/worker_counts.h"
#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/launch/issue.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::ptx::HostSlot;
using gpuctl::ptx::LaunchArgs;

namespace {

/// The agent does not go to sleep for long before a try that is this near, or until a launch has had this long to
/// start.
constexpr std::uint64_t kSoonNs = 1'000'000;

}  // namespace

std::vector<TopUps::Order> TopUps::plan() {
  std::vector<Order> orders;
  const std::uint64_t now = monotonic_ns();
  wanted_ = false;
  context_.book.visit_heads(
      [&](Launch& head, const Stream& stream) { plan_for(head, context_.limits.allowed(stream), now, orders); });
  return orders;
}

void TopUps::plan_for(Launch& head, std::uint32_t allowed, std::uint64_t now, std::vector<Order>& orders) {
  HostSlot& host = context_.book.host(head);
  // Once it has started it is served, even if the driver's call goes on: a call that launches a graph may return only
  // when the graph has ended.
  const bool started = ipc::load(host.started);
  if (head.refused() || ipc::load(host.done) || !(started || head.issued.load())) return;
  Growth& growth = head.growth;
  const std::uint64_t capacity = std::uint64_t{gpuctl::range_size(allowed)} * head.per_sm;
  const std::uint32_t claimed = std::min(ipc::load(host.progress), head.args.total);
  const std::uint64_t chunks = (std::uint64_t{head.args.total - claimed} + head.chunk - 1) / head.chunk;
  const std::uint64_t target = std::min(capacity, chunks);
  // Its holder was told to work for want of a stream for workers. While nothing is allowed it rests all the same.
  if (capacity == 0 && ipc::load(host.lone)) ipc::store(host.lone, 0u);
  const std::uint32_t allowed_before = growth.tries.allow(allowed);
  wanted_ |= returns_.look(head, allowed_before, allowed, target);
  // The daemon has just been told of this launch and may grant something at any moment.
  const bool takes_turns = context_.view.jobs() != ipc::kNoJobs;
  wanted_ |= takes_turns && capacity == 0 && now - head.issued_ns < kSoonNs;
  const std::uint64_t chunk_ns = static_cast<std::uint64_t>(head.instance->task_ns * head.chunk);
  const std::uint32_t overdue = growth.sent.overdue(ipc::load(host.entered), 2 * chunk_ns, now);
  if (overdue > 0) streams_.stuck(&head);
  const std::uint32_t absent = ipc::load(host.resting) + overdue;
  const std::uint32_t at_work = present(head, host) - std::min(present(head, host), absent);
  if (!many_missing(target, at_work)) return;
  if (!started) {  // its turn in the stream has not come, but may come at any moment
    if (growth.wanted_ns == 0) growth.wanted_ns = now;
    wanted_ |= now - growth.wanted_ns < kSoonNs;
    return;
  }
  wanted_ |= now + kSoonNs > growth.tries.next_ns();
  if (now < growth.tries.next_ns()) return;
  growth.tries.tried(now);
  growth.topped_up_for = allowed;
  const std::uint32_t for_idle_sms = 2 * context_.view.idle_sms() * head.per_sm;
  orders.push_back({&head, static_cast<std::uint32_t>(target - at_work) + for_idle_sms});
}

void TopUps::send(const Order& order) {
  Launch& launch = *order.launch;
  const char* name = launch.instance->kernel->name.c_str();
  HostSlot& host = context_.book.host(launch);
  CUstream stream = streams_.take(order.launch);
  if (blocked_.tried(stream != nullptr, monotonic_ns())) {
    debug("the program's streams hold up those for workers: its launches keep their original form for a while");
    context_.note_crowded();
  }
  if (!stream && !ipc::load(host.lone)) debug("no workers for %s: all streams for them are stuck", name);
  ipc::store(host.lone, std::uint32_t{stream == nullptr});
  if (!stream) return;
  std::vector<std::byte> params = launch.params;
  LaunchArgs args = launch.args;
  args.flags |= gpuctl::ptx::kAgentGrid;
  args.range = launch.growth.topped_up_for;
  std::memcpy(params.data() + launch.instance->kernel->args_offset, &args, sizeof args);
  const CUresult result = issue(launch, stream, order.workers, params);
  if (result != CUDA_SUCCESS) {
    debug("adding %u workers to %s failed: %d", order.workers, name, result);
    ipc::store(host.lone, 1u);
    context_.note_result(result);
    return;
  }
  debug("adds %u workers to %s: %u of %u left, allowed on %u SMs", order.workers, name,
        launch.launched - present(launch, host), launch.launched, gpuctl::range_size(launch.growth.topped_up_for));
  sent_ = true;
  std::lock_guard lock(context_.book.mutex());
  const bool had_holder_alone = launch.launched == launch.args.workers && gpuctl::range_size(launch.args.range) == 0;
  launch.growth.given_ns = had_holder_alone ? monotonic_ns() : 0;
  launch.launched += order.workers;
  launch.growth.sent.send(order.workers, monotonic_ns());
}

std::vector<TopUps::Order> TopUps::plan_for_exit() {
  std::vector<Order> orders;
  const std::uint32_t sms = context_.view.sms();
  context_.book.visit_heads([&](Launch& head, const Stream&) {
    const HostSlot& host = context_.book.host(head);
    if (head.refused() || !runs(host)) return;
    const std::uint32_t fit = workers_on(head, sms), missing = fit - std::min(fit, present(head, host));
    if (missing == 0) return;
    head.growth.topped_up_for = gpuctl::pack_range(sms, gpuctl::kNoLimit);
    head.args.polled = context_.book.slots().polled_address();
    head.args.limit = 0;
    orders.push_back({&head, missing});
  });
  return orders;
}

void TopUps::tell_if_sent() {
  if (std::exchange(sent_, false) && context_.view.jobs() != ipc::kNoJobs) Client::get().kick();
}

}  // namespace gpuslice
