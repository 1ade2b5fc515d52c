// The library's own threads: how they start, and when those that call the driver stop.
//
// After the driver's exit handler has run, a call may crash. The exiting thread waits for a thread that is in a call,
// but only for a while (Contexts::end_all_at_exit). A thread that comes back from its call later must not begin
// another. So each of its calls looks at the time first.
#pragma once

#include <cstdint>

namespace gpuslice {

/// Starts a detached thread that runs `body(argument)`. All signals are blocked in it, since they are for the program.
/// The caller's signal mask is the same afterwards. Returns false, with nothing started, if the system gives no thread.
/// Never throws.
bool start_own_thread(void* (*body)(void*), void* argument) noexcept;

/// For a thread that the library starts, before its first driver call. From then on driver() gives this thread
/// functions that answer CUDA_ERROR_DEINITIALIZED, without a call, once the time for calls is over.
void this_is_an_own_thread();
bool is_own_thread();

/// CLOCK_MONOTONIC in ns. From that time on no own thread begins a driver call. Any thread.
void end_own_calls_at(std::uint64_t ns);
bool own_calls_are_over();

}  // namespace gpuslice
