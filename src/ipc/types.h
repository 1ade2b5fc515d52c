// The types of interface io.gpuctl as C++ structs with the same fields; io.gpuctl.varlink says what they mean. The
// settings of a slice come from base/slice_settings.h.
// Amounts of SMs are CapSM per GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/slice_settings.h"

namespace gpuctl::ipc {

using gpuctl::kNoGroup;
using gpuctl::SliceSettings;

/// How long bursts or requests took.
struct Latency {
  std::string of;            ///< "bursts", "requests" or, of a slice, "bursts and requests"
  std::int64_t seconds = 0;  ///< in the last so many; 0: all
  std::int64_t count = 0;
  double p50_us = 0;
  double p99_us = 0;
  double p999_us = 0;
};

/// How many bursts or requests took so long.
struct LatencyBucket {
  double to_us = 0;  ///< less than this, and no less than half of it
  std::int64_t count = 0;
};

/// What programs in a slice and below it had, since it was made or the daemon started.
struct SliceTotals {
  double sm_seconds = 0;
  double latency_seconds = 0;          ///< of all their bursts or requests together
  std::vector<LatencyBucket> latency;  ///< by rising to_us, without those in which nothing was counted
};

/// For which part of the time work waited for SMs, in per cent.
struct Pressure {
  std::string of;  ///< "some" or "full"
  double avg10 = 0;
  double avg60 = 0;
  double avg300 = 0;
  std::int64_t total_us = 0;
};

/// What is in force for a slice on one GPU, and what it has there.
struct SliceOnGpu {
  std::int64_t device = 0;
  std::int64_t reserve = 0;
  std::optional<std::int64_t> max;         ///< absent: nothing limits it
  std::optional<std::int64_t> memory_max;  ///< bytes; absent: nothing limits it
  std::optional<bool> seen = {};           ///< whether programs that start in it see the device; absent: they do
  std::optional<std::int64_t> memory_high = {};
  std::optional<std::int64_t> memory_min = {};    ///< bytes that are kept for it
  std::optional<bool> same = {};                  ///< no amount of any slice differs by GPU; absent: one does
  std::optional<std::int64_t> granted = {};       ///< SMs that it may use now; the next are bytes
  std::optional<std::int64_t> memory = {};        ///< that programs in it and below it hold
  std::optional<std::int64_t> memory_peak = {};   ///< the most that was seen, since the daemon started
  std::optional<std::int64_t> max_refusals = {};  ///< of Slice::memory_refusals, those by its own memory_max
  std::optional<std::int64_t> driver_max = {};    ///< bytes that the driver lets a control group of its programs have
  std::optional<std::string> quota = {}, burst = {};  ///< absent: it has none there
};

/// All settings are present; a limit that is absent is lifted.
struct Slice {
  std::string path;
#define GPUCTL_NUMBER(name, fallback, ...) std::int64_t name = fallback;
#define GPUCTL_TEXT(name, fallback, ...) std::string name = fallback;
#define GPUCTL_LIMIT(name, ...) std::optional<std::int64_t> name;
  GPUCTL_SLICE_SETTINGS(GPUCTL_NUMBER, GPUCTL_TEXT, GPUCTL_LIMIT)
#undef GPUCTL_NUMBER
#undef GPUCTL_TEXT
#undef GPUCTL_LIMIT
  std::int64_t granted = 0;
  std::int64_t demand = 0;
  std::int64_t clients = 0;
  std::int64_t faults = 0;          ///< since the daemon started
  std::int64_t ended = 0;           ///< programs in it and below it that have ended since the daemon started
  std::int64_t ended_launches = 0;  ///< what these, and programs that were moved away, counted there
  std::int64_t ended_evictions = 0;
  std::int64_t memory_waits = 0;             ///< allocations that its memory_high let wait, since the daemon started
  std::int64_t memory_refusals = 0;          ///< by its memory_max, for its memory_min, or as the GPU was full
  std::optional<double> energy_joules = {};  ///< of programs in it and below it; absent: no GPU counts its energy
  std::vector<Latency> latencies;  ///< of programs that are or were in it or below it, lately and in all; may be empty
  std::vector<Pressure> pressure;  ///< empty: nothing in it or below it has waited since the daemon started
  std::optional<SliceTotals> totals;  ///< absent: nothing was used yet
  std::int64_t throttled = 0;         ///< times that it had used up its quota, on all GPUs since the daemon started
  std::int64_t throttled_us = 0;
  /// What is in force where slices above bound it; absent: what is set.
  std::optional<std::int64_t> effective_reserve;
  std::optional<std::string> effective_reserve_mode;
  std::optional<std::int64_t> effective_max;
  std::optional<std::int64_t> effective_priority;
  std::optional<std::string> effective_isolation;
  std::optional<std::int64_t> effective_memory_max;
  std::optional<std::int64_t> effective_memory_high;
  std::optional<std::string> effective_frozen;
  std::optional<std::string> quota_now;      ///< whose quota is used up now, and until when, for people
  std::optional<std::string> latency_now;    ///< what is done for its latency and what came of it, for people
  std::optional<std::string> isolation_now;  ///< what isolation "auto" is and why, for people
  std::vector<SliceOnGpu> on_gpus;           ///< missing: the same on each, and it has nothing there
};

/// What a program of a slice took beside others, with one of both isolations.
struct MeasuredIsolation {
  std::string program;    ///< empty: it is not for the caller
  std::string isolation;  ///< "shared" or "isolated"
  std::int64_t bursts = 0;
  double p99_us = 0;
  double others_per_s = 0;  ///< launches of the others
};

/// What slices beside one are promised of a device, and what can still be promised to it.
struct Room {
  std::int64_t device = 0;
  std::int64_t reserved = 0, reserve_free = 0;    ///< SMs
  std::int64_t memory_kept = 0, memory_free = 0;  ///< bytes
  std::optional<double> isolated_part =
      {};  ///< of the device's time, that isolated slices beside used lately; absent: not known
};

struct Advice {
  std::string isolation;  ///< that suits the slice
  std::string why;        ///< a line for people
  std::string in_force;   ///< for programs that start now
  std::vector<MeasuredIsolation> measured;
  std::vector<Room> room;  ///< on each device
  // Of settings that were asked about:
  std::optional<bool> admitted = {};
  std::optional<std::string> reason = {};  ///< why not; or what they may not do all the same
};

struct Device {
  std::int64_t index = 0;
  std::string name;
  std::string uuid;
  std::string kind;  ///< "cuda" or "software"
  std::int64_t sms = 0;
  std::int64_t memory_bytes = 0;
  std::string mode;
};

struct ClientUsage {
  std::int64_t device = 0;
  std::int64_t granted = 0;
  std::int64_t demand = 0;
  std::int64_t holding = 0;
  std::int64_t outstanding = 0;
  std::int64_t launches = 0;
  std::int64_t block_tasks = 0;
  std::int64_t evictions = 0;
  double evict_us_last = 0;
  double evict_us_mean = 0;
  double evict_us_max = 0;
  std::int64_t busy_us = 0;
  std::int64_t memory = 0;               ///< bytes
  std::string in_force = "nothing";      ///< why its kernels must be able to give SMs back
  std::string mode = "free";             ///< how its kernels run (ipc/mode.h)
  std::int64_t common_sms = 0;           ///< SMs of its original kernels, in common with other programs; 0: none
  std::int64_t sms_told = 0;             ///< how many SMs the program is told of; 0: all, or it has not asked
  std::int64_t mps_sms = 0;              ///< to so many SMs MPS keeps the program until it ends; 0: it does not
  std::int64_t priority_rank = 0;        ///< rank of its slice's priority among ...
  std::int64_t priorities = 1;           ///< ... this many different ones
  std::string time_slice = "not tried";  ///< or "in force", "no channel groups", "refused"
  std::int64_t time_slice_us = 0;
  std::int64_t channel_groups = 0;
  double latency_us_last = 0;
  std::vector<std::int64_t> latency_us_log2;
  std::vector<std::int64_t> evict_us_log2;
  std::vector<Latency> latency;              ///< lately and in all; empty: nothing was counted
  std::optional<std::int64_t> swapped = {};  ///< bytes of its memory that are on the host instead; absent: none
  /// Of launches and evictions, those of before the program came to its slice; absent: none.
  std::optional<std::int64_t> launches_before = {}, evictions_before = {};
};

struct Client {
  std::int64_t pid = 0;
  std::int64_t uid = 0;
  std::string command;
  std::string slice;
  std::string state;
  std::vector<ClientUsage> usage;
  std::optional<bool> isolated = {};  ///< it shares no context of the GPU with others; absent: the daemon does not say
  std::optional<std::string> swap_now = {};  ///< where its memory is, while that is swapped or is to be, for people
};

struct Kernel {
  std::string name;
  std::string module;
  std::string form;  ///< "persistent" or "opaque"
  std::string reason;
  std::int64_t launches = 0;
  std::int64_t registers = 0;
  std::int64_t registers_original = 0;
  std::int64_t per_sm = 0;
  std::int64_t block_task_ns = 0;
};

/// How a kernel scales: the time of a launch with `sms` SMs, divided by the number of its block-tasks.
struct KernelPoint {
  std::int64_t sms = 0;
  double block_task_us = 0;
};

/// What was learnt about a kernel, for policies for jobs; microseconds on the whole GPU.
struct KernelDurations {
  std::string name;
  std::string module;
  std::int64_t launches = 0;
  double predicted_us = 0;
  double observed_us = 0;
  double error = 0;
  double evict_us = 0;
  std::vector<KernelPoint> curve;
  std::optional<std::int64_t> uid;  ///< whose programs launched it; absent: the daemon does not say
  std::string key;                  ///< its number for the daemon: the same for the same module and name
};

/// The MPS of one isolated slice, or of all that are not isolated.
struct Mps {
  std::optional<std::string> slice;  ///< absent: of all that are not isolated
  std::string state;                 ///< "ours", "others", "ready", "failed" or "none"
  std::int64_t programs = 0;         ///< in it
};

/// The reply of GetStatus.
struct Status {
  std::string version;
  std::vector<Device> devices;
  std::int64_t slices = 0;
  std::int64_t clients = 0;
  std::int64_t uptime_s = 0;
  std::vector<std::string> notes;
  std::int64_t faults = 0;                        ///< since the daemon started
  std::optional<std::string> config;              ///< absolute path of the configuration that it reads; absent: none
  std::optional<std::string> mps_directory = {};  ///< of the MPS that it started for all slices that are not isolated
  std::optional<std::string> mandatory = {};      ///< whose programs it ends that use a GPU without the library
  std::optional<std::vector<Mps>> mps = {};       ///< absent: no GPU needs MPS
};

/// A slice as ApplySlices is to make it. Settings that are absent get their default, but for its owner.
struct WantedSlice {
  std::string path;
  SliceSettings settings;
};

/// What ApplySlices changed, or would change, of a slice.
struct SliceDifference {
  std::string path;
  std::optional<SliceSettings> before;  ///< absent: it is created
  std::optional<SliceSettings> after;   ///< absent: it is deleted
  std::int64_t clients = 0;             ///< programs in it and below it
};

/// What Kill did to a program.
struct EndedClient {
  std::int64_t pid = 0;
  std::string command;
  std::string slice;
  std::string mps;  ///< "not active", "not listed", "terminated", or why that failed
  std::vector<std::string> signals;
  bool ended = false;
};

/// Something that happened, as Events tells it.
struct Event {
  std::int64_t number = 0;               ///< counts what happened since the daemon started, from 1
  std::int64_t time_us = 0;              ///< since the epoch
  std::string kind;                      ///< "created", "joined" and so on
  std::string slice;                     ///< path; "": it concerns no slice
  std::optional<std::int64_t> uid = {};  ///< who changed a slice or was refused something; whose program it is
  std::optional<std::int64_t> pid = {};
  std::string command;  ///< of that program; "": the caller may not see it
  std::string text;     ///< what there is to say beside that, for people
};

/// What programs of a user in a slice used of a GPU.
struct UsageEntry {
  std::string slice;
  std::int64_t uid = 0;
  std::string gpu;                          ///< UUID
  std::optional<std::int64_t> device = {};  ///< its index; absent: gpuctld does not manage it now
  double sm_seconds = 0;
  double work_seconds = 0;
  double waited_seconds = 0;
  double memory_byte_seconds = 0;
  double joules = 0;  ///< 0 where no energy is counted
  std::int64_t launches = 0;
  std::int64_t bursts = 0;
  std::int64_t evictions = 0;
};

/// How well the programs in and below a slice are served. Normalized turnaround times (NTT): 1 is as good as alone.
struct Fairness {
  std::string slice;
  std::int64_t seconds = 0;  ///< the window
  std::int64_t programs = 0;
  std::int64_t bursts = 0;  ///< all launches of a program from when it has none outstanding until it has none again
  double antt = 0;          ///< of bursts, whose times are averaged by program; so are the next three
  double dntt = 0;
  double stp = 0;
  double worst = 0;
  std::int64_t launches = 0;
  double launch_antt = 0;  ///< of single launches; so are the next two
  double launch_dntt = 0;
  double launch_worst = 0;
};

/// One reply of Monitor.
struct Snapshot {
  std::int64_t time_ns = 0;
  std::vector<Device> devices;
  std::vector<Slice> slices;
  std::vector<Client> clients;
  std::vector<Fairness> fairness;  ///< of slices with launches in the window
};

/// In a reply to Record. To write one takes 5 us for each.
inline constexpr std::size_t kMostLaunchesInReply = 512;

/// A launch that ended: what Record streams, a workload that gpuctl simulate replays. Instants are CLOCK_MONOTONIC.
struct Launch {
  std::int64_t pid = 0;
  std::string slice;
  std::string kernel;
  std::int64_t device = 0;    ///< the daemon's index
  std::int64_t priority = 0;  ///< of the slice; so is the next
  std::int64_t weight = 1;
  std::int64_t issued_ns = 0;
  std::int64_t done_ns = 0;
  double alone_us = 0;  ///< alone on the whole GPU
  double block_task_us = 0;
  std::int64_t capsm = 1;  ///< the most it could fill
  std::int64_t evictions = 0;
  double evict_us = 0;  ///< mean time of one eviction
  std::string module;
  std::string key;          ///< of the kernel, as in KernelDurations
  std::int64_t blocks = 0;  ///< block-tasks
  std::int64_t threads = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t input_bytes = 0;
  double sms = 0;         ///< the mean number that it had while it had any; 0: not known
  double ran_us = 0;      ///< for how long it had any; 0: not known
  bool original = false;  ///< in original form
};

}  // namespace gpuctl::ipc
