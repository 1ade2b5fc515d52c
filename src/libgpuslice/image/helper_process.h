// Starts one of our programs from within another program's process.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>

#include "base/result.h"

namespace gpuslice {

/// Starts the program at `path`. It gets `descriptors` as its descriptors 3, 4, 5, ..., and /dev/null as 0, 1 and 2.
/// All other descriptors are closed there, and LD_PRELOAD is not in its environment.
///
/// The program does not become a child of the calling process, which gets no SIGCHLD and finds nothing by wait(). It
/// has its own session, so the terminal does not end it. All signals are blocked in it.
///
/// Any thread. Takes as long as two forks. Returns the process id. Error: the system refuses a process. If the file
/// cannot be run, the process just ends.
gpuctl::Result<pid_t> start_unseen(const std::string& path, std::span<const int> descriptors);

}  // namespace gpuslice
