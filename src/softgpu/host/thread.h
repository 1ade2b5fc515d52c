// Threads of the software GPU inside somebody else's process.
#pragma once

#include <functional>

namespace gpuctl::softgpu {

/// Starts a detached thread that takes none of the program's signals and whose timers are exact to microseconds.
/// False if the system has no more threads. `name` has at most 15 characters. `body` must not throw.
bool start_thread(const char* name, std::function<void()> body);

}  // namespace gpuctl::softgpu
