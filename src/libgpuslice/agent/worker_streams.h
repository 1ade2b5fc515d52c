// The agent's streams, for grids of additional workers.
//
// A GPU takes work from few hardware queues per program: 2 or 4 under MPS, as gpuctld says (client/mps_variables.h),
// unless the program asks for another number. The driver distributes streams over the queues round-robin. A stream of
// the program that waits for something holds up everything behind it in its queue. If it waits for the very kernel that
// needs more workers, workers behind it in that queue come too late to help.
//
// So the agent has several streams. If the workers in one of them do not begin (sent_workers.h), the agent stops using
// that stream and sends the workers again through another one. The workers that come late find nothing left to do.
// That costs milliseconds. A stream stays in its queue, and most programs launch in the same streams again and again.
// So streams in which workers were late least often are used first.
//
// Two other ways do not work. More hardware queues: MPS sets each client's queues aside from one pool, so fewer
// programs could start. An event in front of the workers, as a sign that they will begin: other streams may put work
// into the queue between the two.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

namespace gpuslice {

/// One thread. Streams are never destroyed: they go with the context.
class WorkerStreams {
 public:
  /// Makes the streams in the current context, with this priority. Returns false if the driver refuses.
  bool make(int priority);

  /// A stream for workers of `launch` (used only as an address): of those with nothing to do the one that was stuck
  /// least often, or else one that is not stuck. Null if all are stuck. The context that the streams were made in must
  /// be current.
  CUstream take(const void* launch);

  /// Marks the streams with workers for this launch as stuck, until they have nothing to do. It is the latest workers
  /// that did not begin, so this counts against the stream that was taken last. Called again and again while they do
  /// not.
  void stuck(const void* launch);

  bool all_idle() const;

 private:
  struct One {
    CUstream stream = nullptr;
    const void* launch = nullptr;  ///< the launch that it was used for last
    bool stuck = false;
    std::uint32_t times_stuck = 0;
    std::uint64_t taken = 0;  ///< the number of the latest take()
  };
  CUstream use(One& one, const void* launch);

  static constexpr std::size_t kStreams = 8;
  std::array<One, kStreams> streams_;
  std::size_t next_ = 0;
  std::uint64_t taken_ = 0;  ///< calls of take()
};

}  // namespace gpuslice
