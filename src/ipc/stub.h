// The stub page: one memfd per client, made by gpuctld, mapped by both sides.
//
// The daemon writes Grant, Stub::guaranteed_sms and the words before Stub::grant that say so; the client writes
// everything else. Neither trusts what it reads: each read checks the value. All fields are words of 16, 32 or
// 64 bits, accessed atomically or as volatile; there are no locks. The client also maps its Grant words into its GPU's
// address space. So a worker of a running kernel reads the daemon's decision itself, with no thread of the client in
// between.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/latency_buckets.h"
#include "base/sm_range.h"
#include "ipc/mode.h"

namespace gpuctl::ipc {

inline constexpr std::uint32_t kStubMagic = 0x67637462;  // "gctb"
/// Changes whenever a word moves or means something else. A flag or a word of `reserved` that gets a meaning changes
/// nothing if the other side may ignore it and 0 means what was before. A client says at Attach which version it has;
/// with any other than the daemon's it gets no page and runs without limits.
inline constexpr std::uint32_t kStubVersion = 12;
inline constexpr std::uint32_t kMaxDevices = 16;
/// For so long after its start a daemon grants nobody else what programs of the daemon before it may be using. A
/// program that holds a grant attaches again sooner.
inline constexpr std::chrono::seconds kGrace{3};
/// "No limit", as a number of CapSM: more than any GPU has, small enough that times 32 workers it still fits 32 bits.
inline constexpr std::uint32_t kUnlimited = 0x00ffffff;

/// daemon -> client, one per device, on a cache line of its own. The client writes Polled::limits.
///
/// An SM taken from one client is granted to another only when the first is known to have left it, or when its deadline
/// has passed.
struct alignas(64) Grant {
  Polled polled;             ///< read by GPU workers
  std::uint32_t epoch;       ///< futex word (shared): +1 after each change of this Grant
  std::int32_t priority;     ///< of the client's slice
  std::uint64_t decided_ns;  ///< CLOCK_MONOTONIC when the daemon decided the current grant
  /// SMs that no client uses now and this one may not use: blocks that it starts may fall on them first.
  std::uint32_t idle;
  /// SMs that only clients of its slice can have: the slice's reserve while it is kept.
  std::uint32_t reserve;
  std::uint32_t flags;  ///< kMemoryLimited to kHeld, a Mode (mode.h), and a band of priorities (pack_band)
  /// Where its SMs begin, for kernels that can only be confined by number; busy clients are kept apart.
  std::uint32_t first;
  std::uint64_t memory_max;  ///< bytes, if limited: the least limit of its slice and those above, shared by all there
  std::uint32_t time_slice_us;  ///< for its channel groups, where programs take turns; 0: leave them as they are
  std::uint32_t jobs;           ///< what the client must report about launches (kNoJobs to kReportEachJob)
};
/// Grant::flags.
/// The client must ask before it holds more memory (HoldMemory).
inline constexpr std::uint32_t kMemoryLimited = 1;
/// As Grant::memory_max: it asks because its allocations may have to wait, and is refused none.
inline constexpr std::uint64_t kNoMemoryMax = ~std::uint64_t{0};
/// No other client is on this GPU, and the client's slice may have all of it.
inline constexpr std::uint32_t kAlone = 2;
/// The client must wake the daemon when work begins, because SMs of its slice may be lent, or have a quota.
inline constexpr std::uint32_t kReportWork = 4;
/// Nothing that the clients that are there now do takes any of the grant away; only a client that comes or goes can, or
/// somebody who changes a setting. (But where one reserve is lent and another is kept, SMs in common end when the first
/// is lent.) So a client may be Stub::settled_ahead_ms ahead of the GPU.
inline constexpr std::uint32_t kSettled = 8;

/// The client starts nothing new: its launches wait until this is gone, and for kLongestHold at most. What it has on
/// the GPU goes on to its end. Modes and grants stay as they are.
inline constexpr std::uint32_t kHeld = 0x80;
inline constexpr std::chrono::milliseconds kLongestHold{1500};
/// Whether launches go to the driver as they come.
constexpr bool starts_freely(std::uint32_t flags) {
  return (flags & (kModeMask | kHeld)) == pack_mode(Mode::free);
}

/// Grant::flags: which of the GPU's priority levels the client's streams use: part `rank`, from below and from 0, of
/// `count` equal parts. Bands of two clients may have different counts. {0, 1}: all levels.
struct PriorityBand {
  std::uint32_t rank = 0;
  std::uint32_t count = 1;
  bool operator==(const PriorityBand&) const = default;
};
inline constexpr std::uint32_t kBandShift = 8, kBandMask = 0xffff00;
inline constexpr std::uint32_t kMostBands = 255;
/// Up to this many ranks have a level each: GPUs have six levels, and the greatest is the agent's.
inline constexpr std::uint32_t kBandsApart = 5;
constexpr std::uint32_t pack_band(PriorityBand band) {
  return band.rank << kBandShift | band.count << (kBandShift + 8);
}
/// `rank` is below `count`, whatever the page says.
constexpr PriorityBand band_of(std::uint32_t flags) {
  const std::uint32_t count = flags >> (kBandShift + 8) & 0xff, rank = flags >> kBandShift & 0xff;
  return count == 0 || rank >= count ? PriorityBand{} : PriorityBand{rank, count};
}

/// Grant::jobs. A client does nothing for it unless a policy for jobs is in force or launches are recorded.
inline constexpr std::uint32_t kNoJobs = 0;
/// Keep Head up to date and write Records; wake the daemon when work begins or ends.
inline constexpr std::uint32_t kReportJobs = 1;
/// Also wake the daemon whenever another launch becomes the head, because other jobs wait.
inline constexpr std::uint32_t kReportEachJob = 2;
static_assert(sizeof(Grant) == 64 && offsetof(Grant, polled) == 0 && offsetof(Grant, epoch) == 16);

/// Grant::time_slice_us: the driver's own. Whether time slices can be set is found out all the same.
inline constexpr std::uint32_t kDriversTimeSlice = 0xffffffff;

/// What became of Grant::time_slice_us. Any other number counts as not_tried.
enum class TimeSlice : std::uint16_t {
  not_tried = 0,
  in_force = 1,   ///< Usage::time_slice_us says how long
  no_groups = 2,  ///< libgpuslice did not see the driver make channel groups
  refused = 3,    ///< the driver refused
};

/// client -> daemon, one per device. Counters only grow.
struct alignas(64) Usage {
  std::uint32_t demand;         ///< CapSM the outstanding launches could fill; 0 = idle
  std::uint32_t holding;        ///< CapSM held by workers now, as last known
  std::uint32_t applied_epoch;  ///< last Grant::epoch whose limit is known to hold on the GPU
  std::uint32_t outstanding;    ///< launches issued and not complete
  std::uint64_t launches;       ///< all launches so far
  std::uint64_t block_tasks;    ///< block-tasks completed
  std::uint64_t evictions;      ///< shrinks that hit a running kernel
  std::uint64_t evict_ns_last;  ///< latest: from Grant::decided_ns until the SMs were free
  std::uint64_t evict_ns_sum;   ///< over all evictions
  std::uint64_t evict_ns_max;
  std::uint64_t busy_ns;              ///< time with at least one launch outstanding
  std::uint64_t latency_ns_last;      ///< latest launch: from issue to completion
  std::uint32_t latency_us_log2[24];  ///< histogram of launch latencies: bucket i counts [2^i, 2^(i+1)) us
  std::uint32_t evict_us_log2[16];    ///< the same for evictions
  std::uint64_t memory;               ///< bytes of device memory held: not a counter, may fall
  std::uint32_t time_slice_us;        ///< the time slice of its channel groups, when in force
  std::uint16_t time_slice_state;     ///< a TimeSlice
  std::uint16_t channel_groups;       ///< how many it has
};
static_assert(sizeof(Usage) == 256);

/// client -> daemon, one per device: the launch that a policy for jobs schedules, which is the oldest one outstanding.
/// Consistent if `version` is even and did not change. For launches in original form: the one that waits for a grant,
/// else roughly the oldest that is not complete.
struct alignas(64) Head {
  std::uint32_t version;
  std::uint32_t task_ns;    ///< one block-task of this kernel, from earlier launches; 0: not known
  std::uint64_t launch;     ///< counts the client's launches, from 1; 0: nothing is outstanding
  std::uint64_t kernel;     ///< kernel_hash()
  std::uint64_t issued_ns;  ///< CLOCK_MONOTONIC
  std::uint32_t total;      ///< block-tasks
  std::uint32_t claimed;    ///< of these, as last known
  std::uint16_t threads;    ///< per block
  std::uint16_t per_sm;     ///< workers that one SM holds
  std::uint32_t shared;     ///< dynamic, bytes per block
  std::uint32_t input_kib;  ///< to_kib() of the memory into which its parameters point; 0: not known
  /// 1: the launch is in original form, which cannot be evicted. Then `claimed` is 0 until it ends, and `per_sm` is 1.
  std::uint32_t original;
};
static_assert(sizeof(Head) == 64 && offsetof(Head, original) == 52);

/// client -> daemon: a launch that ended. Of launches in original form only some are reported, with times from events.
struct alignas(64) Record {
  std::uint64_t kernel;     ///< kernel_hash()
  std::uint64_t issued_ns;  ///< CLOCK_MONOTONIC, as the next two
  std::uint64_t start_ns;
  std::uint64_t done_ns;
  std::uint64_t evict_ns;  ///< total time of its evictions
  std::uint32_t evictions;
  std::uint32_t total;  ///< this and what follows: as Head
  std::uint16_t threads, per_sm;
  std::uint32_t shared, task_ns, input_kib;
};
static_assert(sizeof(Record) == 64);

/// Record::evictions: the lower half is how many. The upper half is the device, in the client's order, and kWholeDevice
/// if the launch had all SMs from start_ns to its end, and none before. With kOriginalForm the lower half is the number
/// of SMs to which the launch was confined; 0: it was not confined.
inline constexpr std::uint32_t kRecordDeviceShift = 16, kWholeDevice = 0x80000000u, kOriginalForm = 0x40000000u;

/// Head::input_kib: rounded up, so that 0 stands for nothing alone; 4 TiB and more count as that.
constexpr std::uint32_t to_kib(std::uint64_t bytes) {
  const std::uint64_t kib = bytes / 1024 + (bytes % 1024 != 0);
  return kib < UINT32_MAX ? static_cast<std::uint32_t>(kib) : UINT32_MAX;
}

/// Names a kernel in Head and Record: FNV-1a over the module's label, a zero byte and the kernel's name, as
/// ReportKernels gives them.
constexpr std::uint64_t kernel_hash(std::string_view module, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3; };
  for (const char c : module) add(c);
  add('\0');
  for (const char c : name) add(c);
  return hash;
}

inline constexpr std::uint32_t kMostSettledAheadMs = 1000;

/// client -> daemon, one per device: how long bursts took (libgpuslice/agent/burst.h), and requests that the program
/// names. Counters only grow, and wrap.
struct alignas(64) LatencyCounts {
  std::uint32_t bursts[kLatencyBuckets];
  std::uint32_t requests[kLatencyBuckets];  ///< where there are any, bursts are not shown
  std::uint32_t counted;                    ///< changes after each that counted
  std::uint32_t open;                       ///< 1: a burst went on when the agent last looked
  std::uint32_t still;     ///< 1: its launches wait (kHeld), and all that it had put on the device is complete
  std::uint32_t original;  ///< CapSM that launches in original form can fill, without those that wait for a grant
  std::uint64_t bursts_ended;
  std::uint64_t burst_ns;  ///< how long they took together
};
static_assert(sizeof(LatencyCounts) == 2 * 4 * kLatencyBuckets + 64);

struct Stub {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t size;     ///< sizeof(Stub)
  std::uint32_t devices;  ///< entries of grant[] and usage[] in use
  std::uint32_t client_pid;
  /// daemon: 1. The client relies on the connection instead: when it is closed the daemon is gone.
  std::uint32_t daemon_alive;
  std::uint32_t records_written;  ///< client: Records so far; the latest is at place (records_written - 1) % kRecords
  /// daemon: how many of these it has read. A client that is kRecords ahead drops new ones.
  std::uint32_t records_read;
  /// daemon: how many milliseconds of work a client may be ahead of the GPU with kernels that cannot be evicted, where
  /// its grant is settled (kSettled); at most kMostSettledAheadMs; 0: as where it is not.
  std::uint32_t settled_ahead_ms;
  /// client: 1: its process is about to end, or to become another program (exec). What it left on the GPU may have all
  /// SMs as soon as its connection is closed: nobody who knows of that work will be there to ask for them.
  std::uint32_t leaving;
  /// daemon: 1: its memory is to leave the GPUs for the host (swap.h).
  std::uint32_t swap_wanted;
  /// client: pack_swap(). Who attaches with memory on the host has said so before, and in Usage::memory how much.
  std::uint32_t swap;
  std::uint32_t reserved[3];
  /// client: +1 at least five times a second while its process runs, its sign of life. 0: it gives none.
  std::uint32_t beat;
  Grant grant[kMaxDevices];
  Usage usage[kMaxDevices];
  Head head[kMaxDevices];
  /// daemon: how many SMs of each device are guaranteed to the client's slice, so a program in it is told of that many;
  /// 0: all. A program that has asked once is told the same number for the rest of its life, whatever this word says.
  std::uint32_t guaranteed_sms[kMaxDevices];
  /// client: how many it told the program of, if these are fewer than all; 0: all, or the program has not asked.
  std::uint32_t told_sms[kMaxDevices];
  /// Padding up to whole pages.
};
static_assert(sizeof(Stub) == 64 + 64 * kMaxDevices + 256 * kMaxDevices + 64 * kMaxDevices + 2 * 4 * kMaxDevices);

inline constexpr std::size_t kRecordsOffset = 12288;  ///< where Record[kRecords] begins
static_assert(sizeof(Stub) <= kRecordsOffset);
inline constexpr std::uint32_t kRecords = 256;
inline constexpr std::size_t kLatencyOffset =
    kRecordsOffset + kRecords * sizeof(Record);  ///< LatencyCounts[kMaxDevices]
/// Size of the memfd: whole pages.
inline constexpr std::size_t kStubBytes = (kLatencyOffset + kMaxDevices * sizeof(LatencyCounts) + 4095) / 4096 * 4096;

}  // namespace gpuctl::ipc
