// The subgrids of kernels in sliced form (ptx/subgrid_abi.h) that may be on the GPU, by stream of the program. The
// launching thread asks how far it may go ahead and how long they took; the agent asks when those are over that were
// launched before the grant shrank.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "libgpuslice/base/stream_key.h"
#include "libgpuslice/launch/subgrid_size.h"
#include "libgpuslice/streams/launch_timer.h"

namespace gpuslice {

/// A subgrid that was launched.
struct Subgrid {
  std::uint64_t number = 0;    ///< counts the subgrids of the context, from 1
  double waves = 1;            ///< subgrid_waves()
  double expected_ns = 0;      ///< what it should take
  std::uint32_t sms = 0;       ///< that it fills
  std::uint32_t confined = 0;  ///< SMs that it was confined to; 0: not confined
};

/// Those of one stream. Any thread; one thread at a time launches. Its context is current in all calls.
class SubgridQueue {
 public:
  SubgridQueue();
  ~SubgridQueue();
  SubgridQueue(const SubgridQueue&) = delete;
  SubgridQueue& operator=(const SubgridQueue&) = delete;

  /// A series begins, or no more of it will be launched. Between the two calls all subgrids are of that series. When
  /// the last one is complete, collect() tells how long they all took. `whole`: none was refused.
  void begin_series(const OpaqueJob& job);
  void end_series(bool whole);
  /// Appends the series that are over to `out`: those that kept the same SMs, and of which the time of half of the
  /// waves is known at least. Pauses between subgrids do not count. Only the agent calls it.
  void collect(std::vector<TimedLaunch>& out);

  /// Called before a launch into `stream`. `first`: of a kernel. Then the time of whatever is before it in the stream
  /// does not count.
  void begin(CUstream stream, bool first);
  /// Called after the launch, unless the driver refused it.
  void launched(CUstream stream, const Subgrid& subgrid);

  struct Ended {
    std::uint64_t number;
    double wave_ns;  ///< GPU time of one wave; 0: not known
  };
  /// Takes the oldest one out if it is complete.
  std::optional<Ended> take_ended();
  /// Whether another one may be launched, as far as known.
  bool has_room(double target_ns);
  /// Whether all with numbers up to this one are complete. Leaves them in.
  bool complete(std::uint64_t number);
  /// SMs that those fill which are not known to be complete.
  std::uint32_t sms();

 private:
  static constexpr std::size_t kPlaces = kMostSubgrids + 2;  // one more than wait, as the one before is looked at
  struct Place {
    CUevent begun = nullptr, ended = nullptr;
    Subgrid subgrid;
    CUstream stream = nullptr;
    bool over = false;     ///< known to be complete
    bool first = false;    ///< `begun` was recorded in front of it
    bool follows = false;  ///< it was launched before the one in front of it ended, so the GPU was never idle
  };
  Place& place(std::size_t number) { return places_[number % kPlaces]; }
  struct Series {
    OpaqueJob job;
    std::size_t first = 0;  ///< its first place
    std::size_t last = 0;   ///< its latest place; 0: none yet
    double waves = 0, known_waves = 0, known_ns = 0;
    std::uint32_t confined = 0;
    bool open = true, useful = true;
  };
  bool look(Place& place);
  double gpu_ns(std::size_t number);
  double retire();
  void finish_series();

  std::mutex mutex_;  ///< guards what follows
  std::array<Place, kPlaces> places_;
  std::deque<Series> series_;          ///< not over, oldest first
  std::vector<TimedLaunch> timed_;     ///< for collect()
  std::size_t oldest_ = 1, next_ = 1;  ///< places, counted up; from 1, so that there is one in front of each
};

/// Those of one context. Any thread; the context is current in all calls but number() and holding().
class Subgrids {
 public:
  /// For the calling thread, if it is a per-thread default stream.
  std::shared_ptr<SubgridQueue> queue_of(CUstream stream);
  /// The program is about to destroy the stream.
  void stream_destroyed(CUstream stream);

  std::uint64_t next_number() { return number_.fetch_add(1) + 1; }
  /// The number of the latest; 0: there was none.
  std::uint64_t number() const { return number_.load(); }
  /// Whether all with numbers up to this one are complete. Asks the driver.
  bool complete(std::uint64_t number);
  /// SubgridQueue::collect() of all streams.
  void collect(std::vector<TimedLaunch>& out);
  /// SMs that subgrids held when complete() last asked the driver.
  std::uint32_t holding() const { return holding_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;  ///< guards queues_; taken before that of a queue
  std::map<StreamKey, std::shared_ptr<SubgridQueue>> queues_;
  std::atomic<std::uint64_t> number_{0};
  std::atomic<std::uint32_t> holding_{0};
};

}  // namespace gpuslice
