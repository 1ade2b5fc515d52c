#include "libgpuslice/context/usage_publisher.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ipc/stub_map.h"
#include "libgpuslice/book/demand.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/context/job_report.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

/// What ipc::Head says of a job, beside its number.
struct HeadFields {
  std::uint64_t kernel = 0, issued_ns = 0;
  std::uint32_t total = 0, claimed = 0, threads = 0, shared = 0, per_sm = 1, task_ns = 0, input_kib = 0;
};

HeadFields fields_of(const OpaqueJob& job) {
  return {.kernel = job.kernel,
          .issued_ns = job.issued_ns,
          .total = job.blocks,
          .threads = job.threads,
          .shared = job.shared,
          .input_kib = ipc::to_kib(job.input_bytes)};
}

HeadFields fields_of(const Launch& launch, const gpuctl::ptx::HostSlot& host) {
  return {.kernel = hash_of(*launch.instance->kernel),
          .issued_ns = launch.issued_ns,
          .total = launch.args.tasks,
          .claimed = std::min(ipc::load(host.progress), launch.args.tasks),
          .threads = launch.config.threads(),
          .shared = launch.config.shared,
          .per_sm = launch.per_sm,
          .task_ns = whole_ns(launch.instance->task_ns),
          .input_kib = ipc::to_kib(launch.input_bytes)};
}

/// Writes the head under a new version. Without `fields` those stay as they are.
void write_head(ipc::Head& out, const std::optional<HeadFields>& fields, bool original, std::uint64_t number) {
  const std::uint32_t version = ipc::load(out.version);
  ipc::store(out.version, version | 1);
  // The version must be odd before anything else changes.
  std::atomic_thread_fence(std::memory_order_release);
  if (fields) {
    ipc::store(out.kernel, fields->kernel);
    ipc::store(out.issued_ns, fields->issued_ns);
    ipc::store(out.total, fields->total);
    ipc::store(out.claimed, fields->claimed);
    ipc::store(out.threads, static_cast<std::uint16_t>(fields->threads));
    ipc::store(out.shared, fields->shared);
    ipc::store(out.per_sm, static_cast<std::uint16_t>(fields->per_sm));
    ipc::store(out.input_kib, fields->input_kib);
    ipc::store(out.task_ns, fields->task_ns);
  }
  ipc::store(out.original, original ? 1u : 0u);
  ipc::store(out.launch, number);
  ipc::store(out.version, (version | 1) + 1);
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
  const OpaqueJob* opaque = opaque_head(oldest);
  if (opaque && opaque->issued_ns != told_opaque_ns_) {
    told_opaque_ns_ = opaque->issued_ns;
    told_opaque_ = book_.next_number();
  }
  std::optional<HeadFields> fields;
  if (opaque) {
    fields = fields_of(*opaque);
  } else if (oldest) {
    fields = fields_of(*oldest, book_.host(*oldest));
  }
  const std::uint64_t head = opaque ? told_opaque_ : oldest ? oldest->number : 0;
  write_head(Client::get().stub()->head[view_.device_index()], fields, opaque != nullptr, head);
  const std::uint64_t before = std::exchange(told_head_, head);
  return head != before && (head == 0 || before == 0 || wanted == ipc::kReportEachJob);
}

/// The launch in original form that is the client's job, or null if `oldest` is. Once a launch in original form has
/// begun, everything before it in its stream is complete.
const OpaqueJob* UsagePublisher::opaque_head(const Launch* oldest) const {
  const OpaqueJob* job = opaque_.job();
  if (!job || !oldest) return job;
  return ipc::load(book_.host(*oldest).started) || oldest->issued_ns < job->issued_ns ? nullptr : job;
}

}  // namespace gpuslice
