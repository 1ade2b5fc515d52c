// The library's own threads that call the driver, and when they stop.
//
// After the driver's exit handler has run, a call may crash. The exiting thread waits for a thread that is in a call,
// but only for a while (Contexts::end_all_at_exit). A thread that comes back from its call later must not begin
// another. So each of its calls looks at the time first.
#pragma once

#include <cstdint>

namespace gpuslice {

/// For a thread that the library starts, before its first driver call. From then on driver() gives this thread
/// functions that answer CUDA_ERROR_DEINITIALIZED, without a call, once the time for calls is over.
void this_is_an_own_thread();
bool is_own_thread();

/// CLOCK_MONOTONIC in ns. From that time on no own thread begins a driver call. Any thread.
void end_own_calls_at(std::uint64_t ns);
bool own_calls_are_over();

}  // namespace gpuslice
