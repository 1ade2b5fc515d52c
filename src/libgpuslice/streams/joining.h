// Confined launches and the program's streams: the later joins the earlier only when somebody looks.
//
// A launch that is confined goes to a stream of a green context (opaque.h). What the program has put into its own
// stream before must come first, and what it puts there afterwards must come later: an event each way, which costs the
// GPU more than a short kernel does. But mostly the next thing in the stream is another such launch, which the confined
// stream keeps in order by itself. So the event back is left out at first, the lane is *open*, and the program's stream
// *joins* (waits for the confined one) before the driver is asked for anything that could see the difference: whatever
// names that stream, or another one that is ordered with it by the rules of the legacy default stream, or waits for the
// device.
//
// So every function of the driver that takes a stream, or acts on a default stream, either is in joining_functions.inc
// or calls what is below in its hook, or cannot see what a stream has done (stream_functions_test.py has the list, and
// compares all with cuda.h).
#pragma once

#include <cuda.h>

#include <atomic>

namespace gpuslice {

/// How many lanes of this process are open.
extern std::atomic<int> g_open_lanes;

struct Lane;

void join_open(CUstream stream);
void join_all_open();

/// Before the driver is asked for something about a stream, a default one by its own handle (explicit_stream()). Any
/// thread.
inline void join_before(CUstream stream) {
  if (g_open_lanes.load(std::memory_order_acquire) > 0) join_open(stream);
}

/// Before what waits for more than one stream, or acts on the default stream of whichever context.
inline void join_all() {
  if (g_open_lanes.load(std::memory_order_acquire) > 0) join_all_open();
}

/// Before a launch of that lane, which need not join itself.
void join_others(const Lane& lane);

void forget_open_lanes_after_fork();

}  // namespace gpuslice
