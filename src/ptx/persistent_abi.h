// The contract between a kernel in persistent form and the runtime that launches it: the launch block.
//
// One launch owns one DeviceSlot and one HostSlot. Both are zero when the launch is issued. They are used again only
// after every worker ever launched on them is known to have left. This is the whole defence against stale workers:
// there are no sequence numbers and no reset on the device. A worker that starts late finds `next >= total` and leaves.
//
// A worker is a thread block of a persistent grid (1-D). The first grid of a launch runs in the program's stream and
// has `workers` workers. The agent may launch further grids (kAgentGrid) on its own streams; their leaders add 1 to
// `extra` when they enter. One thread of a worker, the leader, claims chunks of block-tasks in rising order with one
// atomic add on `next`, or on `looked` (below). A claimed number is the number of a block-task in the order of the
// grid, unless the launch is strided (task_order()). In a strided launch, a run of numbers stands for block-tasks that
// are `step` apart. Workers that run at the same time then work on neighbouring parts of the grid, as they do where the
// hardware hands out blocks, and neighbours share in the caches what they read.
//
// SMs. A grant is a number of SMs, n. A worker applies it to the SM it runs on: it may stay where %smid < n. The worker
// checks this before each claim. On another SM it leaves, so whole SMs become free. Under MPS, %smid does not name an
// SM. It counts, for each client separately, the SMs on which that client has blocks now; so a grant of n leaves the
// client n SMs, whichever they are (docs/engineering-notes.md, "Facts about the GPU"). The hardware places workers
// wherever there is room, so some workers of a grid leave at once, and the runtime starts as many more. The range of
// one stream can be narrower than the range of its client.
//
// Eager claims (kEager, for short block-tasks). To look first and claim afterwards takes two round trips to memory. For
// kernels with chunks of 15 us, this is a tenth of their time. An eager leader sends both requests at once. Nearly all
// of its claims are quick: a claim of `chunk` numbers needs no further decision if it begins below `quick_below`,
// `range` has not changed, and the latest poll is recent. When SMs are taken away, no worker may take one chunk too
// many. So the worker whose poll finds the range reduced closes `next`: it stores kClosed there, and stores the earlier
// value, with kClosed set, in `looked`. Claims then continue at `looked`, for workers that have looked first. A claim
// that finds kClosed in `next` has claimed nothing; its leader looks first from then on. One worker in kLooksEach
// always looks first, and these workers do the polling: an eager worker already has its chunk when it learns the
// answer. An eager worker polls only if no worker has polled for kPollEagerlyNs.
//
// Counting out early. At the end of a launch, each worker would make one claim in vain, then add 1 to `gone` (see the
// holder) and wait for the answer. So an eager claim that may be the worker's last adds to both at once: the two words
// are neighbours.
//
// First chunks. If all SMs are allowed when a launch is issued, each worker of its in-stream grid has its first chunk
// without a claim, whichever SM it runs on. Otherwise all workers would claim at one counter at once, which takes a
// noticeable part of a short kernel's time. A leader also makes no claim if it knows, from its latest claim or from the
// first chunks, that nothing is left.
//
// Polling. Until a leader has polled the host, the range in LaunchArgs is in force; from then on, DeviceSlot::range.
// Before a claim, a leader that finds `polling` older than kPollEveryNs takes it over (compare and swap), reads the
// client's polled words in host memory with one load, and stores the allowed range. So the rate of reads does not
// depend on how many workers there are. The rate is not higher because a GPU's reads of host memory are served one
// after the other, and the end of every kernel, another client's too, waits for the reads under way (measured: each
// read takes some 0.5 us; four reads every 2 us delay the end of other kernels by up to 3 ms). The leader that polls
// also measures its next chunk (`task_ns`). If the latest post is older than kPostEveryNs, it also posts `left`,
// progress, `task_ns` and `extra` to the HostSlot.
//
// The holder. The last worker of the in-stream grid does not leave before all block-tasks are complete, so the
// program's stream does not go on before that. The kernel itself keeps the order of the stream; no stream operation
// follows it. Each worker of the in-stream grid adds 1 to `gone`, either when it leaves or together with a claim that
// may be its last. The worker that makes `gone` equal to `workers` is the holder. On an SM that is not allowed the
// holder rests: it claims nothing and looks again. When nothing is left to claim, it waits until left == workers +
// extra. If no grid of the agent can start (worker_streams.h), the runtime sets HostSlot::lone. Then a resting holder
// that polls finds all SMs allowed, until another worker polls. One block on an SM too many is better than a launch
// that never ends.
//
// `here` counts, for each SM, the workers that may claim; a resting holder is not among them. While an eviction is
// under way, the runtime reads `here` to learn that no worker is left on a forbidden SM.
//
// Every worker of an agent's grid fences at system scope before it leaves, because its kernel does not end in the
// program's stream. The in-stream grid needs no fence: what follows in the stream comes after it. All workers add 1 to
// `left`. A worker that leaves because of its SM has posted left_ns. When left == workers + extra, the holder writes
// HostSlot::done_ns and done = 1. A worker finishes every chunk it claimed before it counts as left, so at that point
// all block-tasks are complete and visible. Workers of an agent's grid that start later find nothing to claim, and post
// `left`.
//
// No worker waits for its posts to arrive. So the runtime leaves a slot unused for some milliseconds before it zeroes
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/sm_range.h"

namespace gpuctl::ptx {

/// In device memory, 128-byte aligned. Only workers write the fields after the host has zeroed them.
struct DeviceSlot {
  std::uint32_t next;    ///< first unclaimed number, less `given`; ends at total or above, or at kClosed or above
  std::uint32_t gone;    ///< workers of the in-stream grid that left, are leaving, or may have their last chunk
  std::uint32_t looked;  ///< the same with kClosed set, once `next` is closed; 0 before
  /// Every claim is an atomic on this line. Words that are mostly read lie on another line, which another part of the
  /// memory serves.
  std::uint32_t alone[29];
  std::uint32_t polling;  ///< %globaltimer_lo, with bit 0 set, when the latest poll of the host began; 0 = none yet
  std::uint32_t range;    ///< the SMs that may be used (pack_range); 0 = not polled yet
  std::uint32_t extra;    ///< workers of agent grids that entered
  std::uint32_t reserved2;
  std::uint32_t left;  ///< workers that left, for any reason
  std::uint32_t reserved3;
  std::uint32_t posted;   ///< %globaltimer_lo, with bit 0 set, of the latest post to the HostSlot; 0 = none yet
  std::uint32_t task_ns;  ///< duration of one block-task, of the latest chunk measured; 0 = none yet
  std::uint32_t reserved4[24];
  std::uint8_t here[kMaxSms];  ///< workers that may claim, by SM
};
static_assert(sizeof(DeviceSlot) == 512 && offsetof(DeviceSlot, here) == 256);

/// In mapped host memory, 64-byte aligned. Workers write it with plain volatile system stores; the runtime reads it.
struct HostSlot {
  std::uint32_t started;  ///< 1 once the in-stream grid runs: only then may the agent launch more workers
  std::uint32_t done;     ///< 1 when all block-tasks are complete
  std::uint32_t resting;  ///< 1 while the holder rests: it is resident, but claims nothing
  /// Written by the runtime: 1 if no other worker can start, so that a resting holder must work after all.
  std::uint32_t lone;
  std::uint32_t left;      ///< DeviceSlot::left as last posted
  std::uint32_t progress;  ///< block-tasks claimed, as last posted (not above total)
  std::uint32_t task_ns;   ///< DeviceSlot::task_ns as last posted
  std::uint32_t entered;   ///< DeviceSlot::extra as last posted
  std::uint64_t start_ns;  ///< %globaltimer when the in-stream grid started
  std::uint64_t done_ns;   ///< %globaltimer when the last worker left
  std::uint64_t left_ns;   ///< %globaltimer when a worker last left because of its SM
  std::uint64_t reserved3;
};
static_assert(sizeof(HostSlot) == 64);

/// Division by multiplication: for n < 2^31, n / d == (2 * n * magic >> 32) >> shift.
struct Divisor {
  std::uint32_t magic;
  std::uint32_t shift;
};

/// For 0 < d < 2^31.
constexpr Divisor divisor(std::uint32_t d) {
  std::uint32_t shift = 0;
  while ((std::uint64_t{1} << shift) < d) ++shift;
  return {static_cast<std::uint32_t>((std::uint64_t{1} << (31 + shift)) / d + 1), shift};
}

/// Passed by value as the last parameter of a persistent entry, appended after the program's own parameters.
struct LaunchArgs {
  std::uint64_t slot;    ///< device address of the DeviceSlot
  std::uint64_t host;    ///< device-visible address of the HostSlot
  std::uint64_t polled;  ///< device-visible address of a Polled (the stub page)
  std::uint32_t total;   ///< numbers to claim, at most kMaxBlockTasks: `tasks`, or more where strided
  std::uint32_t tasks;   ///< block-tasks: grid_x * grid_y * grid_z
  std::uint32_t grid_x;  ///< the program's grid
  std::uint32_t grid_y;
  std::uint32_t grid_z;
  /// Block-tasks per claim: the lower bound, at least 1, in the upper half; the upper bound in the lower half.
  std::uint32_t chunk;
  std::uint32_t taper;  ///< a claim takes (total - next) >> taper block-tasks, within those bounds
  /// A claim that begins below this number takes the upper bound, has all of its block-tasks, and is no worker's last.
  std::uint32_t quick_below;
  std::uint32_t workers;  ///< workers of the in-stream grid; the same value in the agent's grids
  /// Worker w of the in-stream grid has this many block-tasks without a claim, from w * first on; 0: none.
  std::uint32_t first;
  std::uint32_t given;       ///< first * workers
  std::uint32_t flags;       ///< kAgentGrid, kEager
  std::uint32_t limit;       ///< index of this stream's limit in Polled::limits
  std::uint32_t range;       ///< the SMs that may be used until the first poll (pack_range)
  Divisor by_grid_x;         ///< used where the kernel reads the block index in two dimensions
  Divisor by_grid_y;         ///< used where it reads it in three
  std::uint32_t order;       ///< task_order()
  std::uint32_t advance;     ///< advance()
  std::uint32_t index_mask;  ///< index_mask()
  /// -grid_x. It lies beside index_mask so that one load fetches both; the sign saves a negation in the remainder.
  std::uint32_t minus_grid_x;
};
static_assert(sizeof(LaunchArgs) == 112 && alignof(LaunchArgs) == 8);

/// LaunchArgs::flags: this grid was launched by the agent, not in the program's stream.
inline constexpr std::uint32_t kAgentGrid = 1;
/// LaunchArgs::flags: leaders claim before they have looked at the range.
inline constexpr std::uint32_t kEager = 2;

/// DeviceSlot::next: closed; claims continue at `looked`.
inline constexpr std::uint32_t kClosed = 0x80000000;
/// In an eager launch, one worker in this many still looks before it claims. A power of two.
inline constexpr std::uint32_t kLooksEach = 32;

/// LaunchArgs::order for chunks of 2^run block-tasks that are 2^step apart; 0 if they are adjacent. Chunk c holds the
/// numbers from c << run on, and stands for the block-tasks b, b + 2^step, ... with b = (c >> step << (step + run)) + c
/// % 2^step. So `total` is a multiple of 2^(step + run), chunks are claimed whole, and some of the last chunks have
/// fewer block-tasks, or none.
constexpr std::uint32_t task_order(std::uint32_t step, std::uint32_t run) {
  return run << 8 | step;
}

/// The threads of a worker know the run of block-tasks they go through from one word: the number of the next
/// block-task, in the bits of this mask, minus (mask + 1) times the number of block-tasks left. So the word is negative
/// until the run is done. Keeping the end of the run in a second register made bodies slower that just fit their
/// registers. Where block-tasks are 2^step apart, the number after the last one is below tasks + 2^step.
constexpr std::uint32_t index_mask(std::uint32_t tasks, std::uint32_t step) {
  std::uint32_t mask = 1;
  while (mask < tasks - 1 + (std::uint32_t{1} << step)) mask = 2 * mask + 1;
  return mask;
}
/// The longest run that the word can hold.
constexpr std::uint32_t longest_run(std::uint32_t tasks, std::uint32_t step) {
  return 0x80000000 / (index_mask(tasks, step) + 1);
}
/// Added to the word to go to the next block-task.
constexpr std::uint32_t advance(std::uint32_t tasks, std::uint32_t step) {
  return (std::uint32_t{1} << step) + 1 + index_mask(tasks, step);
}

/// Least times between two polls of the host, and between two posts to it.
inline constexpr std::uint32_t kPollEveryNs = 10'000;
inline constexpr std::uint32_t kPostEveryNs = 50'000;
/// For an eager leader, which has claimed before it looks: it polls only if no other worker has.
inline constexpr std::uint32_t kPollEagerlyNs = 2 * kPollEveryNs;

/// The holder looks at `left` this often while it waits for the other workers.
inline constexpr std::uint32_t kHolderLooksNs = 100;

/// What a leader has to remember until its worker leaves. Any other value is the time at which the chunk to be measured
/// began.
inline constexpr std::uint64_t kNothingToNote = 0;
inline constexpr std::uint64_t kEvicted = 1;  ///< it leaves because its SM is not allowed
inline constexpr std::uint64_t kResting = 2;  ///< it is the holder, and claims nothing

/// `next` must not reach kClosed, and `looked` must not wrap, when every worker of every grid claims once past the end.
inline constexpr std::uint64_t kMaxBlockTasks = 0x3fffffff;

/// The worker's state in shared memory, in bytes (worker/shared_words.h).
inline constexpr std::uint32_t kSharedWordsBytes = 64;
/// Dynamic shared memory of a launch, in bytes, with the worker's words behind it (EntryReport::words_behind). The
/// words begin at a multiple of 16.
constexpr std::uint32_t with_shared_words(std::uint32_t bytes) {
  return bytes > 1u << 30 ? bytes : ((bytes + 15) & ~std::uint32_t{15}) + kSharedWordsBytes;
}

/// Appended to the name of an entry to name its persistent form.
inline constexpr char kPersistentSuffix[] = "__gpuslice_persistent";

}  // namespace gpuctl::ptx
