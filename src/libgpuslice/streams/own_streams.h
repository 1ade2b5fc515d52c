// When work of the program may go into streams that the library made: those of parts of the GPU (green.h), and those
// for workers (agent/worker_streams.h).
//
// Streams share few hardware queues. A stream that waits for a value in memory holds up its queue, and the program may
// write that value only after work in another stream. In its own streams that work is in other queues, if the program
// sees to it: two streams, one after the other, are in two queues. In a stream of ours it may be in the very queue that
// is held up, and the program stands still. Seen on an H100 under MPS with 2 queues; the software GPU shows it with 4.
#pragma once

#include "libgpuslice/base/hardware_queues.h"
#include "libgpuslice/streams/waiting_streams.h"

namespace gpuslice {

/// With so many queues a launch may be moved all the same. As many as the driver makes without MPS.
inline constexpr unsigned kQueuesToMove = 8;
/// With so many, workers may come: the agent tries several streams.
inline constexpr unsigned kQueuesForWorkers = 4;

/// Whether there are `enough` hardware queues, or no stream of the program waits for a value. With a single queue all
/// is in order as it is without us. May ask the driver, so no lock must be held that the agent takes. Any thread.
inline bool may_use_own_streams(unsigned enough) {
  const unsigned queues = hardware_queues();
  if (queues == 1 || queues >= enough || !WaitingStreams::get().any_for_a_value()) return true;
  return WaitingStreams::get().none_for_a_value();
}

}  // namespace gpuslice
