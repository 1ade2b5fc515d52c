#include "libgpuslice/agent/completions.h"

#include <algorithm>

#include "libgpuslice/agent/usage_counters.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/launch/job_report.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

bool Completions::look(bool none_runs, std::uint64_t now_ns) {
  LaunchBook& book = context_.book;
  ipc::Usage* out = context_.view.usage();
  const bool at_work = book.outstanding() > 0;
  if (at_work && out) add(out->busy_ns, now_ns - last_look_ns_);
  last_look_ns_ = now_ns;
  if (out) {
    if (const std::uint32_t original = context_.usage.take_original_launches(); original > 0)
      add_to_launches(*out, original);
  }
  const bool any_over = book.take_out(now_ns, [&](const Launch& launch) {
    returns_.over(launch);
    if (!launch.refused()) count(launch, now_ns);
  });
  if (any_over) {
    if (!book.active().empty()) context_.limits.divide();
    context_.agent.notify_change();
  }
  // Publishes even without a change, since demand falls with progress.
  if (any_over || !book.active().empty()) context_.usage.publish();
  book.give_back_left(none_runs, now_ns);
  return at_work;
}

void Completions::count(const Launch& launch, std::uint64_t now_ns) {
  const gpuctl::ptx::HostSlot& host = context_.book.host(launch);
  Instance& instance = *launch.instance;
  times_.add(launch, host, now_ns);
  const LaunchTimes::Stretch stretch = times_.undisturbed_stretch(launch, host);
  if (const double task_ns = times_.task_time(launch, host, stretch); task_ns > 0) {
    instance.task_ns = instance.task_ns == 0 ? task_ns : 0.75 * instance.task_ns + 0.25 * task_ns;
    instance.kernel->task_ns = static_cast<std::uint32_t>(instance.task_ns);
  }
  const std::int64_t done_ns = static_cast<std::int64_t>(ipc::load(host.done_ns)) + times_.clock_offset();
  debug("%s is over: seen %lld us after its end", instance.kernel->name.c_str(),
        static_cast<long long>((static_cast<std::int64_t>(now_ns) - done_ns) / 1000));
  ipc::Usage* out = context_.view.usage();
  if (!out) return;
  const std::int64_t latency = done_ns - static_cast<std::int64_t>(launch.issued_ns);
  const auto latency_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(latency, 0));
  add_to_launches(*out, 1);
  add<std::uint64_t>(out->block_tasks, launch.args.tasks);
  ipc::store(out->latency_ns_last, latency_ns);
  count_in(out->latency_us_log2, latency_ns);
  if (context_.view.jobs() != ipc::kNoJobs)
    record(context_.view, launch, host, times_.clock_offset(),
           stretch.sms == context_.view.sms() ? stretch.from_ns : 0);
}

}  // namespace gpuslice
