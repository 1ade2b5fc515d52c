// The end of a step: what is left of it, and what the job has done on the GPU.
#pragma once

#include <string>

#include "slurm/daemon.h"
#include "slurm/job_slice.h"

namespace gpuctl::slurm {

/// Ends programs in the slice that belong to this step and outlive its tasks, before Slurm does it by SIGKILL: under
/// MPS that may break other programs. Other steps of the job go on.
void end_left_behind(Daemon& daemon, const std::string& path, const Job& job);

/// A line: "gpuctl: slurm/job-7: max 3 SMs, 2 programs, 1500 launches, 12 evictions, 0 faults".
Answer<std::string> account(Daemon& daemon, const std::string& path);

}  // namespace gpuctl::slurm
