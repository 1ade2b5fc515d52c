#include "libgpuslice/launch/usage_publisher.h"

#include <algorithm>
#include <span>
#include <utility>

#include "ipc/stub_map.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/launch/demand.h"
#include "libgpuslice/launch/job_report.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

ipc::Head head_of(const OpaqueJob& job) {
  return {.kernel = job.kernel,
          .issued_ns = job.issued_ns,
          .total = job.blocks,
          .threads = static_cast<std::uint16_t>(job.threads),
          .per_sm = 1,
          .shared = job.shared,
          .input_kib = ipc::to_kib(job.input_bytes),
          .original = 1};
}

ipc::Head head_of(const Launch& launch, const gpuctl::ptx::HostSlot& host) {
  return {.task_ns = whole_ns(launch.instance->task_ns),
          .launch = launch.number,
          .kernel = hash_of(*launch.instance->kernel),
          .issued_ns = launch.issued_ns,
          .total = launch.args.tasks,
          .claimed = std::min(ipc::load(host.progress), launch.args.tasks),
          .threads = static_cast<std::uint16_t>(launch.config.threads()),
          .per_sm = static_cast<std::uint16_t>(launch.per_sm),
          .shared = launch.config.shared,
          .input_kib = ipc::to_kib(launch.input_bytes)};
}

void write_head(ipc::Head& out, const ipc::Head& head) {
  ipc::write_versioned(out, [&] {
    ipc::store(out.task_ns, head.task_ns);
    ipc::store(out.kernel, head.kernel);
    ipc::store(out.issued_ns, head.issued_ns);
    ipc::store(out.total, head.total);
    ipc::store(out.claimed, head.claimed);
    ipc::store(out.threads, head.threads);
    ipc::store(out.per_sm, head.per_sm);
    ipc::store(out.shared, head.shared);
    ipc::store(out.input_kib, head.input_kib);
    ipc::store(out.original, head.original);
    ipc::store(out.launch, head.launch);
  });
}

/// Whether the launch in original form is the job, and not the launch in persistent form. Either may be null. Once a
/// launch in original form has begun, everything before it in its stream is complete.
bool original_first(const OpaqueJob* original, const Launch* persistent, const LaunchBook& book) {
  if (!original || !persistent) return original != nullptr;
  return !ipc::load(book.host(*persistent).started) && persistent->issued_ns >= original->issued_ns;
}

}  // namespace

void UsagePublisher::publish() {
  ipc::Usage* out = view_.usage();
  if (!out) return;
  std::uint32_t demand = 0;
  for (const Stream* stream : book_.active()) demand += demand_of(*stream, book_.slots(), view_.sms());
  demand = std::min(demand + opaque_.demand(), view_.sms());
  const std::uint32_t wanted = view_.jobs();
  bool news = wanted != ipc::kNoJobs && tell_head(wanted);
  ipc::store(out->demand, demand);
  ipc::store(out->outstanding, book_.outstanding());
  ipc::store(*view_.original(), opaque_.running());
  // The daemon need not hear of demand that the current grant covers. But the daemon gives the SMs that other clients
  // leave idle to clients with known demand. So a client that begins with a part of the GPU reports its demand, once
  // for each size of that part.
  const std::uint32_t now = view_.granted();
  const bool part = now > view_.reserve() && now < view_.sms();
  news |= demand > told_demand_ && demand > now;
  news |= demand > 0 && told_demand_ == 0 && part && std::exchange(told_part_, now) != now;
  news |= wanted != ipc::kNoJobs && (demand == 0) != (told_demand_ == 0);
  news |= demand > told_demand_ && view_.tells_work();
  if (news) Client::get().kick();
  told_demand_ = demand;
}

void UsagePublisher::withdraw() {
  if (ipc::Usage* out = view_.usage()) {
    ipc::store(out->demand, 0u);
    ipc::store(out->outstanding, 0u);
    ipc::store(*view_.original(), 0u);
  }
}

void UsagePublisher::forget_told() {
  told_demand_ = 0;
  told_head_ = 0;
  told_part_ = 0;
}

std::uint32_t UsagePublisher::take_original_launches() {
  return original_launches_.load(std::memory_order_relaxed) > 0 ? original_launches_.exchange(0) : 0;
}

/// Returns true if the daemon must be told now.
bool UsagePublisher::tell_head(std::uint32_t wanted) {
  const Launch* oldest = book_.oldest();
  const OpaqueJob* opaque = opaque_.job();
  if (!original_first(opaque, oldest, book_)) opaque = nullptr;
  if (opaque && opaque->issued_ns != told_opaque_ns_) {
    told_opaque_ns_ = opaque->issued_ns;
    told_opaque_ = book_.next_number();
  }
  ipc::Head head{};
  if (opaque) {
    head = head_of(*opaque);
    head.launch = told_opaque_;
  } else if (oldest) {
    head = head_of(*oldest, book_.host(*oldest));
  }
  write_head(Client::get().stub()->head[view_.device_index()], head);
  const std::uint64_t before = std::exchange(told_head_, head.launch);
  return head.launch != before && (head.launch == 0 || before == 0 || wanted == ipc::kReportEachJob);
}

}  // namespace gpuslice
