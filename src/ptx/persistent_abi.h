// What a kernel in persistent form and the runtime that launches it agree upon (DESIGN: "launch block").
//
// One launch owns one DeviceSlot and one HostSlot, both zero when the launch is issued and never reused before
// every worker ever launched on them is known to have left. That is the whole defence against stale workers: no
// sequence numbers, no reset on the device, so a worker that starts late finds `next >= total` and leaves.
//
// A worker is a thread block of the persistent grid (1-D). Its ordinal is `base + %ctaid.x`. Its leader, the
// thread with linear tid 0, claims chunks of block-tasks in rising order with one atomic add on `next`.
//
// Leaving: the effective limit is min(*grant, *stream_limit) * per_sm workers; a worker whose ordinal is at or
// above it leaves instead of claiming. Only workers with ordinal < pollers read the two host words (over PCIe, in
// one go, once per claim) and copy limit + 1 to DeviceSlot::limit; all others read that copy. 0 means "not polled
// yet, no limit". With limit 0 everybody leaves, the pollers too.
//
// Leaving workers make their block-tasks' writes visible (gpu scope; system scope in a grid of the agent, whose
// kernel boundary is not in the program's stream) and then add 1 to `workers`. The one that finds nobody left
// (launched in stream + extra - left == 0) and nothing left to claim (`next >= total`) opens the gate: it writes
// HostSlot::done, then DeviceSlot::done. Every claimed chunk is finished by its claimer before that claimer is
// counted as left, so then all block-tasks are complete.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuctl::ptx {

/// In device memory, 64-byte aligned. Fields are written by workers alone, after the host zeroed them.
struct DeviceSlot {
  std::uint32_t next;      ///< first unclaimed block-task; may end above total
  std::uint32_t limit;     ///< workers allowed + 1; 0 = not polled yet
  std::uint64_t workers;   ///< low 32 bits: workers that left; high 32 bits: agent-launched workers that entered
  std::uint32_t done;      ///< 1 when all block-tasks are complete: the word the gate waits for (EQ 1)
  std::uint32_t reserved[11];
};
static_assert(sizeof(DeviceSlot) == 64);

/// In mapped host memory, 64-byte aligned. Written by workers with plain volatile system stores, read by the runtime.
struct HostSlot {
  std::uint32_t started;   ///< 1 once the in-stream grid runs: only then may the agent launch more workers
  std::uint32_t done;      ///< 1 when all block-tasks are complete
  std::uint32_t live;      ///< workers present + 1, written when that count falls to the limit or to none; 0 = never
  std::uint32_t progress;  ///< block-tasks claimed, as a poller last saw it (not above total)
  std::uint64_t start_ns;  ///< %globaltimer when the in-stream grid started
  std::uint64_t done_ns;   ///< %globaltimer when the gate was opened
  std::uint32_t task_ns;   ///< duration of one block-task, from a poller's latest chunk; 0 = not measured
  std::uint32_t reserved[7];
};
static_assert(sizeof(HostSlot) == 64);

/// Passed by value as the last parameter of a persistent entry, appended after the program's own parameters.
struct LaunchArgs {
  std::uint64_t slot;          ///< device address of the DeviceSlot
  std::uint64_t host;          ///< device-visible address of the HostSlot
  std::uint64_t grant;         ///< device-visible address of a u32: CapSM the client may use (the stub page)
  std::uint64_t stream_limit;  ///< device-visible address of a u32: CapSM this stream may use of that
  std::uint32_t total;         ///< block-tasks: grid_x * grid_y * grid_z, at most kMaxBlockTasks
  std::uint32_t grid_x;        ///< the program's grid
  std::uint32_t grid_y;
  std::uint32_t grid_z;
  std::uint32_t chunk;         ///< block-tasks per claim, at least 1
  std::uint32_t per_sm;        ///< workers of this kernel that one SM holds (one CapSM), at least 1
  std::uint32_t workers;       ///< workers of the in-stream grid, whichever grid this is
  std::uint32_t base;          ///< ordinal of this grid's first worker
  std::uint32_t pollers;       ///< ordinals below it poll the host, at least 1
  std::uint32_t flags;         ///< kAgentGrid
};
static_assert(sizeof(LaunchArgs) == 72 && alignof(LaunchArgs) == 8);
static_assert(offsetof(LaunchArgs, total) == 32 && offsetof(LaunchArgs, chunk) == 48);

/// LaunchArgs::flags: this grid was launched by the agent, not in the program's stream.
inline constexpr std::uint32_t kAgentGrid = 1;

/// `next` must not wrap when every worker of every grid claims once past the end.
inline constexpr std::uint64_t kMaxBlockTasks = 0x7fffffff;

/// Appended to the name of an entry to name its persistent form.
inline constexpr char kPersistentSuffix[] = "__gpuslice_persistent";

}  // namespace gpuctl::ptx
