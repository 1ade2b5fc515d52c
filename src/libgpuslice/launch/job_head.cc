#include "libgpuslice/launch/job_head.h"

#include <algorithm>

#include "ipc/stub_map.h"
#include "libgpuslice/launch/job_report.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

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

void write_head(ipc::Head& out, const std::optional<HeadFields>& fields, bool original, std::uint64_t number) {
  ipc::write_versioned(out, [&] {
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
  });
}

bool original_first(const OpaqueJob* original, const Launch* persistent, const LaunchBook& book) {
  if (!original || !persistent) return original != nullptr;
  return !ipc::load(book.host(*persistent).started) && persistent->issued_ns >= original->issued_ns;
}

}  // namespace gpuslice
