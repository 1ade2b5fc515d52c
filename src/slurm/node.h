// What else this node knows: which jobs have steps here, and DCGM's files that say which jobs a GPU serves.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuctl::slurm {

/// The jobs with a slurmstepd on this node, which names itself "slurmstepd: [123.0]". Nothing if one has not yet
/// said whose it is.
std::optional<std::set<std::uint32_t>> living_jobs(const std::string& proc = "/proc");

/// Puts the job's line into the file of each GPU, or takes it out. DCGM's exporter reads these: a file has the number
/// of its GPU as its name, and a line for each job. `gpus`: "0,1", as SLURM_JOB_GPUS has them.
Result<void> tell_dcgm(const std::string& directory, std::string_view gpus, std::uint32_t job, bool runs);

/// `list` with `library` behind what is in it; LD_PRELOAD of a program that brings its own.
std::string preload_behind(const std::string& list, const std::string& library);

/// Without it.
std::string preload_without(const std::string& list, const std::string& library);

}  // namespace gpuctl::slurm
