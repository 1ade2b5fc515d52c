// Starting a program of ours out of somebody else's process.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>

#include "base/result.h"

namespace gpuslice {

/// Starts the program at `path` with the descriptors as its 3, 4, 5, ... and /dev/null as its 0, 1 and 2; all others
/// are closed there, and LD_PRELOAD is not in its environment. It is nobody's child here: the calling program gets no
/// SIGCHLD and finds nothing by wait(). It is in a session of its own, so the program's terminal does not end it. All
/// signals are blocked in it. Any thread; takes as long as two forks. Returns its process id. Errors: the system
/// refuses a process; that the file cannot be run shows by its end.
gpuctl::Result<pid_t> start_unseen(const std::string& path, std::span<const int> descriptors);

}  // namespace gpuslice
