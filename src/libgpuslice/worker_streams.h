// The agent's streams, for grids of additional workers.
//
// A GPU takes work from few hardware queues per program (8, unless CUDA_DEVICE_MAX_CONNECTIONS says otherwise), and which streams
// share one is the driver's affair. A stream of the program that waits for an event holds up everything behind it in its queue; if
// that event is behind the very kernel that is to get more workers, these come too late to help it. So there are several streams,
// and whoever does not get on is left alone: its workers are sent once more, by another one. Those that come late find
// nothing left to do. To ask for more queues is no way out: MPS sets each client's aside from one pool, so fewer programs start.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

namespace gpuslice {

/// One thread. Neither streams nor events are ever destroyed: the context takes them with it.
class WorkerStreams {
 public:
  /// Makes them in the current context, of this priority. False: the driver does not.
  bool make(int priority);

  /// Asks the driver which are stuck. In the context they were made in, as take() and sends().
  void look(std::uint64_t now_ns);

  /// A stream with nothing to do, or else one that gets on. Null: all are stuck.
  CUstream take();

  /// Says that a grid of so many workers for `launch` (an address, no more) goes to this stream next. Call it before it is launched.
  void sends(CUstream stream, const void* launch, std::uint32_t workers, std::uint64_t now_ns);

  /// Workers sent for this launch that were stuck at the latest look().
  std::uint32_t stuck(const void* launch) const;

  bool all_idle() const;

 private:
  struct One {
    CUstream stream = nullptr;
    CUevent reached = nullptr;  ///< in front of the latest grid
    const void* launch = nullptr;  ///< that it was for; null once it was reached
    std::uint32_t workers = 0;
    std::uint64_t sent_ns = 0;
    bool stuck = false;
  };

  std::array<One, 8> streams_;
  std::size_t next_ = 0;
};

}  // namespace gpuslice
