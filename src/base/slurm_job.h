// The names of slices that the plugin for Slurm makes, one for each job: they go with the job.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace gpuctl {

inline constexpr std::string_view kSlurmJob = "job-";

/// The job of a slice whose last name is "job-123"; 0: it is no job's.
inline std::uint32_t slurm_job_of(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  if (!path.starts_with(kSlurmJob)) return 0;
  path.remove_prefix(kSlurmJob.size());
  std::uint32_t job = 0;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), job);
  return error == std::errc() && end == path.data() + path.size() ? job : 0;
}

/// Whether the slice is a job's, or lies below one. A job's slice lies below another one.
inline bool belongs_to_slurm_job(std::string_view path) {
  for (; path.find('/') != path.npos; path = path.substr(0, path.rfind('/')))
    if (slurm_job_of(path) != 0) return true;
  return false;
}

}  // namespace gpuctl
