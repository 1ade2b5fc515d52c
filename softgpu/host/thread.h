// Threads of the software GPU inside the program's process.
#pragma once

#include <functional>

namespace gpuctl::softgpu {

/// Starts a detached thread that receives none of the program's signals and whose timers are exact to microseconds.
/// Returns false if the system has no thread left. `name` has at most 15 characters. `body` must not throw.
bool start_thread(const char* name, std::function<void()> body);

}  // namespace gpuctl::softgpu
