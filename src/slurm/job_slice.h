// The slice of a job on this node: what it is to have, how it is made, and how it goes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/types.h"
#include "slurm/daemon.h"
#include "slurm/request.h"

namespace gpuctl::slurm {

/// What Slurm says of a job, or of a step of it, on this node.
struct Job {
  std::uint32_t id = 0;
  std::uint32_t step = 0;
  uid_t uid = 0;
  std::vector<gid_t> groups;
  std::int64_t shards = 0;  ///< that it has on this node; 0: none
  std::int64_t gpus = 1;    ///< on how many GPUs of this node they are
  bool batch = false;       ///< the step is the batch script, whose programs know of no step
};

inline constexpr std::string_view kParent = "slurm";  ///< where a job's slice is made unless it asks for another place

/// "job-123"
std::string job_name(std::uint32_t job);

/// Whether the job is to have a slice at all.
bool wants_slice(const Request& request, const Arguments& arguments, const Job& job);

/// What the job's slice is made with if this step makes it. Fewer SMs or less memory are for the step alone where
/// shards bound the job: on other nodes its batch script makes the slice. A target is the job's.
Request of_whole_job(const Request& step, const Arguments& arguments, const Job& job);

/// Whether a step is to have a slice of its own below its job's: it asks for less, or for another target of latency.
bool needs_own(const Request& step, const ipc::Slice& of_job);

/// Its share of each GPU, and no more than it asked for. An absent limit is none.
struct Limits {
  std::optional<std::int64_t> sms, memory;
};
Limits limits_of(const Request& request, const Arguments& arguments, const Job& job,
                 const std::vector<ipc::Device>& devices);

/// Whether the job's user owns `path` or a slice above it, among `slices`.
bool is_owner(const std::string& path, const Job& job, const std::vector<ipc::Slice>& slices);

/// Makes the slice, unless an earlier step of the job has made it. Returns its path: that of a slice for this step
/// alone, below the job's, where needs_own().
Answer<std::string> make_slice(Daemon& daemon, const Request& request, const Arguments& arguments, const Job& job);

/// Whether the slice, which make_slice() returned, is for a step alone.
bool is_of_one_step(std::string_view path);

/// Ends the programs that are left in it and deletes it and what is below it. Returns what of that failed, a line each.
std::vector<std::string> end_slice(Daemon& daemon, const std::string& path);

/// The job's slices, wherever it asked for them.
std::vector<std::string> slices_of(std::uint32_t job, uid_t uid, const std::vector<ipc::Slice>& slices);

/// Slices without a program in them whose job is not among `living`: a node that crashed, or a daemon that could not be
/// reached at a job's end, leaves them behind.
std::vector<std::string> leftovers(const std::vector<ipc::Slice>& slices, const std::set<std::uint32_t>& living,
                                   const Arguments& arguments);

Answer<std::vector<ipc::Slice>> list_slices(Daemon& daemon);

}  // namespace gpuctl::slurm
