// What the book of a context (launch_book.h) lists: launches in persistent form, and the streams that they wait in.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "ipc/stub.h"
#include "libgpuslice/base/stream_key.h"
#include "libgpuslice/image/kernels.h"
#include "libgpuslice/launch/sent_workers.h"
#include "libgpuslice/launch/top_up_tries.h"
#include "libgpuslice/launch/work_time.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

/// A launch as the program asked for it.
struct LaunchConfig {
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t shared;                       ///< dynamic shared memory, in bytes
  CUstream stream;                            ///< never null: CU_STREAM_LEGACY stands for the default stream
  std::vector<CUlaunchAttribute> attributes;  ///< the attributes that the persistent form keeps

  std::uint64_t block_tasks() const { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }
  std::uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

/// The graph launch that a launch belongs to.
struct InGraph {
  std::uint64_t number = 0;  ///< number of the graph launch in the context; 0: none
  bool beside = false;       ///< kernels of that graph launch may run at the same time
  bool counts = true;        ///< the launch counts in Stream::queued; of a graph launch only the last kernel does
};

/// What the agent notes in order to add workers to a launch.
struct Growth {
  SentWorkers sent;                 ///< workers in the agent's grids
  TopUpTries tries;                 ///< the agent's tries to add workers
  std::uint64_t wanted_ns = 0;      ///< since when it could use more workers but has not started; 0: it is not so
  std::uint64_t given_ns = 0;       ///< when the agent sent all workers but the holder at once; 0: it did not
  std::uint32_t topped_up_for = 0;  ///< the range of SMs it was allowed at the latest top-up
};

/// What the agent measures of a launch.
struct Measured {
  WorkTime work;                  ///< of the workers that fit on the SMs it was allowed
  std::uint64_t complete_ns = 0;  ///< when the agent saw it complete
  std::uint64_t evict_ns = 0;     ///< time that its evictions took in all, including the return of its workers
  std::uint32_t evictions = 0;
};

/// A persistent launch from its issue until every worker has left. It has more than a dozen members because two
/// threads write it in turn: the launching thread until it is in the book, then the agent. Of the launching thread is
/// then only `failed`, until `issued` is set.
struct Launch {
  Instance* instance = nullptr;
  /// Instance::persistent at the time of the launch; the program may clear that one later.
  CUfunction function = nullptr;
  LaunchConfig config;
  /// The packed parameter block, LaunchArgs included; the agent uses it to launch more workers.
  std::vector<std::byte> params;
  gpuctl::ptx::LaunchArgs args{};
  std::uint32_t per_sm = 1;  ///< workers that one SM holds: one CapSM
  std::uint32_t chunk = 1;   ///< most block-tasks per claim
  std::uint32_t slot = 0;
  std::uint32_t launched = 0;       ///< workers of all grids so far
  std::uint64_t number = 0;         ///< number of this launch in the context, from 1
  std::uint64_t issued_ns = 0;      ///< CLOCK_MONOTONIC
  std::uint64_t input_bytes = 0;    ///< memory into which its parameters point, as far as known; under jobs only
  std::atomic<bool> issued{false};  ///< set when the launching thread no longer uses this object
  bool failed = false;              ///< the driver refused the launch, so nothing runs; for refused()
  InGraph graph;
  Growth growth;
  Measured measured;

  bool refused() const { return issued.load(std::memory_order_acquire) && failed; }
};

/// Most launches, of kernels and of graphs, that may wait in a stream. It is below the number at which the driver
/// blocks in a launch (about 1,000 entries per stream).
inline constexpr std::size_t kMaxQueuedPerStream = 384;

struct Stream {
  StreamKey key{};
  CUstream handle = nullptr;
  std::mutex issue;
  std::deque<std::unique_ptr<Launch>> outstanding;  ///< oldest first
  std::size_t queued = 0;                           ///< launches of kernels and of graphs in `outstanding`
  std::uint32_t limit = 0;  ///< index of its own entry in Polled::limits while it has outstanding launches; 0: none
  bool latency_critical = false;
  std::uint64_t gave_up = 0;  ///< LaunchBook::Progress::mark at which a thread last gave up waiting for a launch block

  /// Calls visit(launch) for each launch that may be running: the oldest, and those of the same graph launch that may
  /// run at the same time.
  template <class Visit>
  void visit_heads(Visit visit) const {
    const Launch& oldest = *outstanding.front();
    for (const std::unique_ptr<Launch>& launch : outstanding) {
      if (launch.get() != &oldest && !(oldest.graph.beside && launch->graph.number == oldest.graph.number)) break;
      visit(*launch);
    }
  }
};

}  // namespace gpuslice
