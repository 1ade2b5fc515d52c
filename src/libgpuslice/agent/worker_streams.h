// The agent's streams, for grids of additional workers.
//
// A GPU takes work from few hardware queues per program, 2 under MPS unless CUDA_DEVICE_MAX_CONNECTIONS says otherwise
// (`gpuctl run` asks for 4), and streams share them by turns. A stream of the program that waits for something holds up
// everything behind it in its queue; if what it waits for is behind the very kernel that is to get more workers, these
// come too late to help it. So there are several streams, and one whose workers do not begin (sent_workers.h) is left
// alone: they are sent once more, by another one. Those that come late find nothing left to do. To ask for many more
// queues is no way out: MPS sets each client's aside from one pool, so fewer programs start. Nor is an event in front
// of the workers a sign: others put work into a queue between the two.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

namespace gpuslice {

/// One thread. Streams are never destroyed: the context takes them with it.
class WorkerStreams {
 public:
  /// Makes them in the current context, of this priority. False: the driver does not.
  bool make(int priority);

  /// A stream for workers of `launch` (an address, no more): one with nothing to do, or else one that is not stuck.
  /// Null: all are stuck. In the context they were made in.
  CUstream take(const void* launch);

  /// Streams with workers for this launch are stuck, until they have nothing to do.
  void stuck(const void* launch);

  bool all_idle() const;

 private:
  struct One {
    CUstream stream = nullptr;
    const void* launch = nullptr;  ///< that it was used for last
    bool stuck = false;
  };

  std::array<One, 8> streams_;
  std::size_t next_ = 0;
};

}  // namespace gpuslice
