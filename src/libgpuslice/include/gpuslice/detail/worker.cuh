// The work of a worker's leader, for <gpuslice/device.cuh>: a worker as persistent_abi.h describes it. The rewriter
// puts the same code around kernels in PTX (src/ptx/worker/*.ptx.in). When one of the two changes, the other must too:
// src/ptx/worker/model_test.cc checks both against one model.
// (Here thread 0 always leads, no claim is quick, and no worker counts out early.)
#pragma once

#include <gpuslice/abi/persistent_abi.h>
#include <cstddef>

namespace gpuslice::detail {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "gpuslice/device.cuh needs compute capability 7.0 or later"
#endif

using address = unsigned long long;  // in global memory
using gpuctl::ptx::DeviceSlot;
using gpuctl::ptx::HostSlot;
using gpuctl::ptx::kEvicted;
using gpuctl::ptx::kHolderLooksNs;
using gpuctl::ptx::kNothingToNote;
using gpuctl::ptx::kResting;
using gpuctl::ptx::LaunchArgs;

/// Published when no block-task is left. No launch has as many block-tasks.
constexpr unsigned kNoTask = gpuctl::ptx::kMaxBlockTasks;

/// In shared memory. All threads read `published`; the rest is the leader's. It is not in registers, because the
/// kernel's own code needs those between claims.
struct worker_state {
  uint2 published[2];        ///< the next block-tasks to run and their end; the two entries are used alternately
  unsigned long long about;  ///< kNothingToNote, kEvicted, kResting, or a time
  unsigned started_on;       ///< the SM it started on
  unsigned rank, place;      ///< where the launch shares SMs: its rank and its place
  unsigned chunk;            ///< block-tasks of the chunk to be measured
  unsigned known;            ///< all numbers below this one are claimed, as far as it knows
  bool looks;                ///< it looks before it claims, even if the launch is eager
  bool holds;                ///< it is the holder
};

// Access to memory that other blocks, other grids and the host change at the same time.
__device__ inline unsigned load(address at) {
  unsigned value;
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}
__device__ inline uint2 load2(address at) {
  uint2 v;
  asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(at) : "memory");
  return v;
}
__device__ inline uint4 load4(address at) {
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at)
               : "memory");
  return v;
}
__device__ inline void store(address at, unsigned value) {
  asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
__device__ inline void store2(address at, unsigned x, unsigned y) {
  asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(at), "r"(x), "r"(y) : "memory");
}
__device__ inline void store4(address at, uint4 v) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ inline void store64(address at, unsigned long long value) {
  asm volatile("st.volatile.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
__device__ inline unsigned add(address at, unsigned more) {
  unsigned before;
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(more) : "memory");
  return before;
}
__device__ inline unsigned replace(address at, unsigned expected, unsigned value) {
  unsigned before;
  asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(before) : "l"(at), "r"(expected), "r"(value) : "memory");
  return before;
}
__device__ inline unsigned exchange(address at, unsigned value) {
  unsigned before;
  asm volatile("atom.global.exch.b32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(value) : "memory");
  return before;
}
__device__ inline void fence_device() {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}
__device__ inline void fence_system() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}

__device__ inline unsigned sm_id() {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}
__device__ inline unsigned long long clock_ns() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

__device__ inline bool is_plain(const LaunchArgs& args) {
  return args.slot == 0;
}
__device__ inline bool of_agent(const LaunchArgs& args) {
  return (args.flags & gpuctl::ptx::kAgentGrid) != 0;
}

/// Reads a range as gpuctl::pack_range packs it.
__device__ inline bool is_outside(unsigned range, unsigned sm) {
  return sm < (range & 0xffff) || sm >= range >> 16;
}

__device__ inline unsigned divide(unsigned n, const gpuctl::ptx::Divisor& by) {
  return __umulhi(2 * n, by.magic) >> by.shift;
}

/// Adds this worker to the workers that may claim on its SM, or takes it away. `here` consists of bytes, but atomics
/// work on words. Returns how many were there.
__device__ inline unsigned count_here(const LaunchArgs& args, unsigned sm, bool present) {
  static_assert(gpuctl::kMaxSms == 256 && offsetof(DeviceSlot, here) % 4 == 0);
  const unsigned shift = (sm & 3) * 8, one = 1u << shift;
  return add(args.slot + offsetof(DeviceSlot, here) + (sm & 252), present ? one : 0u - one) >> shift & 0xff;
}

/// How many SMs the GPU has, if the launch shares them; else 0.
__device__ inline unsigned shared_sms(const LaunchArgs& args) {
  return args.flags >> gpuctl::ptx::kSmsShift;
}

/// Adds to the count of workers of a rank. Returns what it was.
__device__ inline unsigned count_ranked(const LaunchArgs& args, unsigned rank, unsigned more) {
  return add(args.slot + offsetof(DeviceSlot, ranked) + 4 * rank, more);
}

/// Adds this worker to those on its SM, and notes its place.
__device__ inline void take_place(const LaunchArgs& args, worker_state& worker) {
  const unsigned before = count_here(args, worker.started_on, true);
  if (shared_sms(args) == 0) return;
  worker.rank = min(before, gpuctl::ptx::kLastRank);
  worker.place = divide(worker.rank * shared_sms(args) + count_ranked(args, worker.rank, 1), args.by_per_sm);
}

/// Takes it from those on its SM.
__device__ inline void leave_place(const LaunchArgs& args, worker_state& worker) {
  count_here(args, worker.started_on, false);
  if (shared_sms(args) != 0) count_ranked(args, worker.rank, 0u - 1);
}

/// What a range is applied to.
__device__ inline unsigned where(const LaunchArgs& args, const worker_state& worker) {
  return shared_sms(args) != 0 ? worker.place : sm_id();
}

/// blockIdx of a block-task.
__device__ inline dim3 block_index(const LaunchArgs& args, unsigned task) {
  const unsigned row = divide(task, args.by_grid_x);
  const unsigned plane = divide(row, args.by_grid_y);
  return dim3(task - row * args.grid_x, row - plane * args.grid_y, plane);
}

/// Announces the worker. Returns true if the worker already has its first chunk, or may claim it without a look because
/// its SM was allowed when it was launched.
__device__ inline bool enter(const LaunchArgs& args, worker_state& worker) {
  worker.about = kNothingToNote;
  worker.started_on = sm_id();
  worker.known = args.given;
  worker.holds = false;
  take_place(args, worker);
  worker.looks = of_agent(args) || is_outside(args.range, where(args, worker));
  if (of_agent(args)) {
    add(args.slot + offsetof(DeviceSlot, extra), 1);
    fence_device();  // the holder must count this worker before anything that this worker claims
    return false;
  }
  if (blockIdx.x == 0) {
    store64(args.host + offsetof(HostSlot, start_ns), clock_ns());
    store(args.host + offsetof(HostSlot, started), 1);
  }
  return args.first != 0 || !is_outside(args.range, where(args, worker));
}

/// Called when SMs are taken away. Eager claims take nothing from here on. Returns false if the launch was closed
/// already.
__device__ inline bool close(const LaunchArgs& args) {
  const unsigned next = exchange(args.slot + offsetof(DeviceSlot, next), gpuctl::ptx::kClosed);
  if ((next & gpuctl::ptx::kClosed) != 0) return false;
  store(args.slot + offsetof(DeviceSlot, looked), next | gpuctl::ptx::kClosed);
  return true;
}

/// Reads from the host what is allowed, for all workers, and posts the launch's progress if a post is due. Returns the
/// new range. `before`: the range so far. Sets `closed` if this closes the launch.
__device__ inline unsigned poll(const LaunchArgs& args, bool resting, unsigned now, unsigned next, unsigned before,
                                bool& closed) {
  const uint4 polled = load4(args.polled);  // a gpuctl::Polled
  const unsigned two = args.limit < 2 ? polled.y : args.limit < 4 ? polled.z : polled.w;
  const unsigned limit = two >> (args.limit & 1) * 16;
  const unsigned moves = shared_sms(args) != 0 ? limit & 0xff : 0;
  const int first = static_cast<int>((limit & 0xff) - moves);
  const int end = static_cast<int>(min((limit >> 8 & 0xff) + 1, polled.x) - moves);
  const bool lone = resting && load(args.host + offsetof(HostSlot, lone)) != 0;
  const unsigned range = lone ? gpuctl::kMaxSms << 16 : first < end ? end << 16 | first : 0xffff;
  store(args.slot + offsetof(DeviceSlot, range), range);
  if ((range & 0xffff) > (before & 0xffff) || range >> 16 < before >> 16) closed |= close(args);

  static_assert(offsetof(DeviceSlot, posted) == offsetof(DeviceSlot, left) + 8 &&
                offsetof(DeviceSlot, task_ns) == offsetof(DeviceSlot, left) + 12);
  static_assert(offsetof(HostSlot, progress) == offsetof(HostSlot, left) + 4 &&
                offsetof(HostSlot, task_ns) == offsetof(HostSlot, left) + 8 &&
                offsetof(HostSlot, entered) == offsetof(HostSlot, left) + 12);
  const uint4 known = load4(args.slot + offsetof(DeviceSlot, left));  // left, nothing, posted, task_ns
  if (known.z == 0 || now - known.z > gpuctl::ptx::kPostEveryNs) {
    store(args.slot + offsetof(DeviceSlot, posted), now);
    store4(args.host + offsetof(HostSlot, left),
           {known.x, min(next, args.total), known.w, load(args.slot + offsetof(DeviceSlot, extra))});
  }
  return range;
}

/// Counts out a worker that is neither an agent's nor the holder. Returns true if this worker is now the holder.
__device__ inline bool count_out(const LaunchArgs& args, worker_state& worker) {
  worker.holds = add(args.slot + offsetof(DeviceSlot, gone), 1) + 1 == args.workers;
  return worker.holds;
}

/// Called on an SM that is not allowed. Returns true if this worker leaves, false if it is the holder and rests.
__device__ inline bool leave_or_rest(const LaunchArgs& args, worker_state& worker) {
  if (worker.about != kResting) {
    if (!worker.holds && (of_agent(args) || !count_out(args, worker))) {
      worker.about = kEvicted;
      return true;
    }
    worker.about = kResting;
    store(args.host + offsetof(HostSlot, resting), 1);
    leave_place(args, worker);
  }
  return false;
}

/// Notes what the leader does from now on, and returns a chunk, cut at the end of the launch (task_order()).
__device__ inline uint2 take(const LaunchArgs& args, worker_state& worker, unsigned begin, unsigned count,
                             bool measure) {
  worker.about = measure ? clock_ns() : kNothingToNote;
  worker.known = begin + count;
  if (begin >= args.total) return {kNoTask, kNoTask};
  const unsigned step = args.order & 0xff, run = args.order >> 8;
  const unsigned number = begin >> run;
  const unsigned first = (number >> step << (step + run)) + (number & ((1u << step) - 1));
  const unsigned end = min(first + (count << step), args.tasks);
  worker.chunk = end > first ? ((end - first - 1) >> step) + 1 : 1;
  return {first, end};
}

/// DeviceSlot::next and looked.
__device__ inline uint2 load_counters(const LaunchArgs& args) {
  return {load(args.slot + offsetof(DeviceSlot, next)), load(args.slot + offsetof(DeviceSlot, looked))};
}

/// How many numbers to claim from `next` on.
__device__ inline unsigned size_of_claim(const LaunchArgs& args, unsigned next) {
  const unsigned most = args.chunk & 0xffff, least = args.chunk >> 16;
  return max(min((args.total - next) >> args.taper, most), least);
}

/// Returns the next block-tasks and their end. If the two are equal, there is none for now. If the first is kNoTask,
/// the worker must leave. `at_once`: the result of enter(). Nothing waits in here, because the threads of the leader's
/// warp would not converge again before the body.
__device__ inline uint2 claim(const LaunchArgs& args, worker_state& worker, bool at_once) {
  const address next_at = args.slot + offsetof(DeviceSlot, next);
  bool measure = at_once && blockIdx.x == 0;  // of the first chunks, worker 0 measures its own
  if (at_once && args.first != 0) return take(args, worker, blockIdx.x * args.first, args.first, measure);
  unsigned next = args.given;
  bool closed = false;
  if (!at_once) {
    static_assert(offsetof(DeviceSlot, range) == offsetof(DeviceSlot, polling) + 4);
    const unsigned known = worker.known;
    const bool something_left = known < args.total;
    bool eager = something_left && (args.flags & gpuctl::ptx::kEager) != 0 && !worker.looks &&
                 blockIdx.x % gpuctl::ptx::kLooksEach != 0;
    const unsigned count = size_of_claim(args, known);
    uint2 counters = {0, 0};  // next, looked
    if (eager)
      counters.x = add(next_at, count);
    else if (something_left)
      counters = load_counters(args);
    uint2 state = load2(args.slot + offsetof(DeviceSlot, polling));  // polling, range
    if (eager && (counters.x & gpuctl::ptx::kClosed) != 0) {
      eager = false;
      worker.looks = true;
      counters = load_counters(args);
      state = load2(args.slot + offsetof(DeviceSlot, polling));
    }
    closed = (counters.y & gpuctl::ptx::kClosed) != 0;
    const unsigned counter = closed ? counters.y & ~gpuctl::ptx::kClosed : counters.x;
    if ((counter & gpuctl::ptx::kClosed) != 0) return {0, 0};  // another worker is about to write where claims go on
    next = something_left ? args.given + counter : known;
    unsigned range = state.y == 0 ? args.range : state.y;
    worker.known = next;
    if (worker.about > kResting) {
      const unsigned long long ns = min(clock_ns() - worker.about, 0xffffffffull);
      store(args.slot + offsetof(DeviceSlot, task_ns), max(static_cast<unsigned>(ns) / worker.chunk, 1u));
      worker.about = kNothingToNote;
    }
    if (next >= args.total) return {kNoTask, kNoTask};
    const unsigned now = static_cast<unsigned>(clock_ns()) | 1;
    if (state.x == 0 || now - state.x > (eager ? gpuctl::ptx::kPollEagerlyNs : gpuctl::ptx::kPollEveryNs)) {
      if (replace(args.slot + offsetof(DeviceSlot, polling), state.x, now) == state.x) {
        range = poll(args, worker.about == kResting, now, next, range, closed);
        measure = true;
      }
    }
    const bool outside = is_outside(range, where(args, worker));
    worker.looks = closed || outside;
    if (eager) return take(args, worker, next, count, measure);
    if (outside) return leave_or_rest(args, worker) ? uint2{kNoTask, kNoTask} : uint2{0, 0};
  }
  const unsigned count = size_of_claim(args, next);
  const unsigned claimed = add(closed ? args.slot + offsetof(DeviceSlot, looked) : next_at, count);
  if (!closed && (claimed & gpuctl::ptx::kClosed) != 0) {
    worker.looks = true;
    return {0, 0};
  }
  const unsigned begin = (claimed & ~gpuctl::ptx::kClosed) + args.given;
  if (worker.about == kResting) {
    store(args.host + offsetof(HostSlot, resting), 0);
    take_place(args, worker);
  }
  return take(args, worker, begin, count, measure);
}

/// Called after the barrier behind which all threads have read that no block-task is left. Everything that they wrote
/// happens before this.
__device__ inline void leave(const LaunchArgs& args, worker_state& worker) {
  const bool evicted = worker.about == kEvicted;
  if (evicted) store64(args.host + offsetof(HostSlot, left_ns), clock_ns());
  if (worker.about != kResting) leave_place(args, worker);
  if (of_agent(args))
    fence_system();  // what follows in the program's stream does not wait for this grid
  else if (!evicted && !worker.holds)
    count_out(args, worker);
  // There is no acquire here: it would empty the SM's cache under the workers that still run there.
  unsigned left = add(args.slot + offsetof(DeviceSlot, left), 1) + 1;
  unsigned extra = load(args.slot + offsetof(DeviceSlot, extra));
  if (!worker.holds) {
    if (of_agent(args) && left == args.workers + extra) store(args.host + offsetof(HostSlot, left), left);
    return;
  }
  while (left != args.workers + extra) {
    __nanosleep(kHolderLooksNs);
    left = load(args.slot + offsetof(DeviceSlot, left));
    extra = load(args.slot + offsetof(DeviceSlot, extra));
  }
  if (extra != 0) fence_system();
  store64(args.host + offsetof(HostSlot, done_ns), clock_ns());
  const unsigned task_ns = load(args.slot + offsetof(DeviceSlot, task_ns));
  store4(args.host + offsetof(HostSlot, left), {left, args.total, task_ns, extra});
  static_assert(offsetof(HostSlot, done) == offsetof(HostSlot, started) + 4);
  store2(args.host + offsetof(HostSlot, started), 1, 1);
}

}  // namespace gpuslice::detail
