// What a kernel in persistent form and the runtime that launches it agree upon (a launch block).
//
// One launch owns one DeviceSlot and one HostSlot, zero when it is issued and not reused before every worker ever
// launched on them is known to have left. That is the whole defence against stale workers: no sequence numbers, no
// reset on the device, so a worker that starts late finds `next >= total` and leaves.
//
// A worker is a thread block of a persistent grid (1-D). The first grid of a launch runs in the program's stream with
// `workers` workers; the agent may launch further grids (kAgentGrid) on its own streams, whose leaders add 1 to `extra`
// when they enter. One of its threads, the leader, claims chunks of block-tasks in rising order with one atomic add on
// `next`, or on `looked` (below). Numbers that are claimed are those of block-tasks, in the order of the grid, unless
// the launch is strided (task_order()): then a run of them stands for block-tasks `step` apart, so that what workers do
// at the same time lies together in the grid, as it does where the hardware hands out blocks. Neighbours share what
// they read, in caches.
//
// SMs. A grant is a number of SMs, n, and a worker obeys it for the SM it runs on: it may stay where %smid < n. Before
// each claim it looks; elsewhere it leaves, so whole SMs become free. Under MPS %smid is not the name of an SM but
// counts, for each client by itself, the SMs on which that client has blocks now, so n of them is what remains
// whichever they are (measured: docs/measurements.md). The hardware places workers wherever there is room, so some of a
// grid leave at once; the runtime starts as many more. The range of one stream can be narrower than that of its client.
//
// Eager claims (kEager, for short block-tasks). To look and then to claim is two round trips to memory, a tenth of the
// time of kernels with chunks of 15 us. An eager leader sends both at once. Nearly all of its claims are quick: one of
// `chunk` numbers that ends up below `quick_below`, with `range` as it was and the latest poll not long ago, leaves
// nothing to think about. So that no worker takes a chunk too many when SMs are taken away, who learns of that from the
// host closes `next`: it puts kClosed there, and what was there, with kClosed, into `looked`, where claims go on for
// those who have looked first. A claim that finds kClosed claimed nothing; that leader looks first from then on. One
// worker in kLooksEach looks first always, and it is these that poll: an eager one would have a chunk by then.
//
// Counting out early. At the end of a launch all workers would claim once in vain, and then add 1 to `gone` (see the
// holder) and wait for the answer. So an eager claim that may be the worker's last adds to both at once: the words are
// neighbours.
//
// First chunks. Where all SMs are allowed when a launch is issued, each worker of its in-stream grid has its first
// chunk without a claim, whichever SM it comes to: all of them at one counter at once is what a short kernel would
// notice. Nor does a leader claim who knows, from its latest claim or from the first chunks, that nothing is left.
//
// Polling. What is allowed stands in `range` once a leader has polled the host, in LaunchArgs before. Before a claim, a
// leader that finds `polling` older than kPollEveryNs takes it over (compare and swap), reads the client's polled words
// in host memory in one go, and stores what is allowed. So the host is read at that rate however many workers there
// are, and whichever. It is not read more often because the reads of a GPU are served one after the other, and the end
// of every kernel, another client's too, waits for those under way (measured: each takes some 0.5 us; four every 2 us
// delay the end of other kernels by up to 3 ms). That leader measures its next chunk too (`task_ns`). If the latest
// post is older than kPostEveryNs it also posts `left`, progress, `task_ns` and `extra` to the HostSlot.
//
// The holder. The last worker of the in-stream grid does not leave before all block-tasks are complete, so the
// program's stream does not go on before: order in the stream is kept by the kernel itself, with no stream operation
// behind it. Each worker of the in-stream grid adds 1 to `gone`, when it leaves or with a claim that may be its last;
// the one that makes it `workers` is the holder. On an SM that is not allowed it rests: it takes nothing and looks
// again. With nothing left to claim it waits until left == workers + extra. If no agent's grid can start
// (worker_streams.h) the runtime says so: then a holder that rests and polls finds all SMs allowed, until somebody
// polls again. One block on an SM too many is better than a launch that never ends.
//
// Guarded kernels. Their workers run one block-task each, so there is one for each block-task (chunk is 1, first is 0),
// which it claims eagerly; the last of its threads to end leaves for all. Who leaves last of the in-stream grid may
// have had its block-task while some are unclaimed: as the holder it waits for agent's grids to take those, and posts,
// so that the agent knows.
//
// `here` counts by SM the workers that may claim; a resting holder is not among them. While an eviction is under way
// the runtime reads it, to learn that no worker is left on a forbidden SM.
//
// Every leaving worker of an agent's grid fences at system scope first, because its kernel boundary is not in the
// program's stream (the in-stream grid needs none: what follows in the stream comes after it). All add 1 to `left`. One
// that leaves because of its SM has posted left_ns. The holder, when left == workers + extra, writes HostSlot::done_ns
// and done = 1: every claimed chunk is finished by its claimer before that one counts as left, so then all block-tasks
// are complete and visible. Workers of an agent's grid that come later find nothing to claim, and post `left`.
//
// Nobody waits for posts to arrive; so the runtime lets a slot rest for some milliseconds before it zeroes it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/sm_range.h"

namespace gpuctl::ptx {

/// In device memory, 128-byte aligned. Fields are written by workers alone, after the host zeroed them.
struct DeviceSlot {
  std::uint32_t next;    ///< first unclaimed number, less `given`; ends at total or above, or at kClosed or above
  std::uint32_t gone;    ///< workers of the in-stream grid that left, are leaving, or may have their last chunk
  std::uint32_t looked;  ///< as `next`, with kClosed, once that is closed; 0 before
  /// Every claim is an atomic there: what is only read is elsewhere, for another part of the memory to serve.
  std::uint32_t alone[29];
  std::uint32_t polling;  ///< %globaltimer_lo, made odd, when the latest poll of the host began; 0 = none yet
  std::uint32_t range;    ///< of SMs that may be used (pack_range); 0 = not polled yet
  std::uint32_t extra;    ///< workers of agent grids that entered
  std::uint32_t reserved;
  std::uint32_t left;  ///< workers that left, for whatever reason
  std::uint32_t reserved3;
  std::uint32_t posted;   ///< %globaltimer_lo, made odd, of the latest post to the HostSlot; 0 = none yet
  std::uint32_t task_ns;  ///< duration of one block-task, of the latest chunk measured; 0 = none yet
  std::uint32_t reserved2[24];
  std::uint8_t here[kMaxSms];  ///< workers that may claim, by SM
};
static_assert(sizeof(DeviceSlot) == 512 && offsetof(DeviceSlot, here) == 256);

/// In mapped host memory, 64-byte aligned. Written by workers with plain volatile system stores, read by the runtime.
struct HostSlot {
  std::uint32_t started;  ///< 1 once the in-stream grid runs: only then may the agent launch more workers
  std::uint32_t done;     ///< 1 when all block-tasks are complete
  std::uint32_t resting;  ///< 1 while the holder rests: it is there, but claims nothing
  /// Written by the runtime: 1 if no other worker can come, so that a resting holder works after all.
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

/// What takes the place of a division: for n < 2^31, n / d == (2 * n * magic >> 32) >> shift.
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
  /// Block-tasks per claim: the least number, at least 1, in the upper half, the most in the lower.
  std::uint32_t chunk;
  std::uint32_t taper;        ///< a claim takes (total - next) >> taper block-tasks within those bounds
  std::uint32_t quick_below;  ///< a claim that begins below this number takes the most, and is nobody's last
  std::uint32_t workers;      ///< workers of the in-stream grid, whichever grid this is
  /// Block-tasks that worker w of the in-stream grid has from w * first on, without a claim; 0: none.
  std::uint32_t first;
  std::uint32_t given;       ///< first * workers
  std::uint32_t flags;       ///< kAgentGrid
  std::uint32_t limit;       ///< which of Polled::limits is this stream's
  std::uint32_t range;       ///< of SMs that may be used until the first poll (pack_range)
  Divisor by_grid_x;         ///< where the index of a block is read in two dimensions
  Divisor by_grid_y;         ///< and in three
  std::uint32_t order;       ///< task_order()
  std::uint32_t advance;     ///< advance()
  std::uint32_t index_mask;  ///< index_mask()
  /// -grid_x: beside index_mask, to be loaded with it, and so that a remainder needs no negation.
  std::uint32_t minus_grid_x;
};
static_assert(sizeof(LaunchArgs) == 112 && alignof(LaunchArgs) == 8);

/// LaunchArgs::flags: this grid was launched by the agent, not in the program's stream.
inline constexpr std::uint32_t kAgentGrid = 1;
/// To claim without having looked.
inline constexpr std::uint32_t kEager = 2;

/// DeviceSlot::next: nothing is claimed here any more.
inline constexpr std::uint32_t kClosed = 0x80000000;
/// One in so many workers looks before it claims, though the launch is eager. A power of two.
inline constexpr std::uint32_t kLooksEach = 32;

/// LaunchArgs::order of chunks of 2^run block-tasks that are 2^step apart; 0 where they are one behind the other. Chunk
/// c, of the numbers from c << run on, has the block-tasks b, b + 2^step, ... with b = (c >> step << (step + run)) + c
/// % 2^step. So `total` is a multiple of 2^(step + run), chunks are claimed whole, and some of the last have fewer
/// block-tasks, or none.
constexpr std::uint32_t task_order(std::uint32_t step, std::uint32_t run) {
  return run << 8 | step;
}

/// What the threads of a worker know of the run of block-tasks they go through is one word: the next one, under this
/// mask, less (mask + 1) times how many are left; so it is negative until the run is done. With the end of the run in a
/// second register, bodies that just fit theirs were slower. Where block-tasks are 2^step apart, what would be next
/// after the last one is below tasks + 2^step.
constexpr std::uint32_t index_mask(std::uint32_t tasks, std::uint32_t step) {
  std::uint32_t mask = 1;
  while (mask < tasks - 1 + (std::uint32_t{1} << step)) mask = 2 * mask + 1;
  return mask;
}
/// The longest run such a word can hold.
constexpr std::uint32_t longest_run(std::uint32_t tasks, std::uint32_t step) {
  return 0x80000000 / (index_mask(tasks, step) + 1);
}
/// What leads from one of its words to the next.
constexpr std::uint32_t advance(std::uint32_t tasks, std::uint32_t step) {
  return (std::uint32_t{1} << step) + 1 + index_mask(tasks, step);
}

/// The host is read, and written, no more often.
inline constexpr std::uint32_t kPollEveryNs = 10'000;
inline constexpr std::uint32_t kPostEveryNs = 50'000;
/// By those who claimed already: only if nobody else did.
inline constexpr std::uint32_t kPollEagerlyNs = 2 * kPollEveryNs;

/// `next` must not come to kClosed, nor `looked` wrap, when every worker of every grid claims once past the end.
inline constexpr std::uint64_t kMaxBlockTasks = 0x3fffffff;

/// What a worker's leader must remember lies in shared memory.
inline constexpr std::uint32_t kSharedWordsBytes = 64;
/// Dynamic shared memory of a launch, in bytes, with those words behind it (EntryReport::words_behind); its own begins
/// at a multiple of 16.
constexpr std::uint32_t with_shared_words(std::uint32_t bytes) {
  return bytes > 1u << 30 ? bytes : ((bytes + 15) & ~std::uint32_t{15}) + kSharedWordsBytes;
}

/// Appended to the name of an entry to name its persistent form.
inline constexpr char kPersistentSuffix[] = "__gpuslice_persistent";

}  // namespace gpuctl::ptx
