// What the daemon is told of the launch that is a job (ipc::Head): of a client's oldest one.
#pragma once

#include <cstdint>
#include <optional>

#include "ipc/stub.h"
#include "libgpuslice/launch/launch_book.h"
#include "libgpuslice/streams/launch_timer.h"

namespace gpuslice {

/// What a Head says of a job, beside its number.
struct HeadFields {
  std::uint64_t kernel = 0, issued_ns = 0;
  std::uint32_t total = 0, claimed = 0, threads = 0, shared = 0, per_sm = 1, task_ns = 0, input_kib = 0;
};

HeadFields fields_of(const OpaqueJob& job);
HeadFields fields_of(const Launch& launch, const gpuctl::ptx::HostSlot& host);

/// Writes the head under a new version. Without `fields` those stay as they are. `number` 0: there is no job.
void write_head(gpuctl::ipc::Head& out, const std::optional<HeadFields>& fields, bool original, std::uint64_t number);

/// Whether the launch in original form is the job, and not the launch in persistent form. Either may be null. Once a
/// launch in original form has begun, everything before it in its stream is complete. The caller holds the book's
/// mutex.
bool original_first(const OpaqueJob* original, const Launch* persistent, const LaunchBook& book);

}  // namespace gpuslice
