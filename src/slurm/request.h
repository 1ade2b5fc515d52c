// What a job asks for on Slurm's command line, and what the administrator set in plugstack.conf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuctl::slurm {

/// Options of srun, sbatch and salloc. Not given: absent.
struct Request {
  std::optional<std::string> slice;    ///< --gpu-slice: the slice below which the job's own is made
  std::optional<std::int64_t> sms;     ///< --gpu-sms
  std::optional<std::int64_t> memory;  ///< --gpu-mem, bytes
  std::optional<std::string> latency;  ///< --gpu-latency, as it was written

  bool any() const { return slice || sms || memory || latency; }
};

enum class Option { slice, sms, memory, latency };

struct OptionRow {
  Option option;
  const char* name;
  const char* argument;
  const char* help;
};

/// In the order of the help.
inline constexpr OptionRow kOptions[]{
    {Option::slice, "gpu-slice", "NAME", "make the job's GPU slice below this one"},
    {Option::sms, "gpu-sms", "N", "use at most so many SMs of each GPU"},
    {Option::memory, "gpu-mem", "SIZE", "use at most so much memory of each GPU, such as 8G"},
    {Option::latency, "gpu-latency", "TIME", "aim at this latency of GPU work, such as 5ms"},
};

/// Puts the value of an option into `request`. The last one given counts, as with Slurm's own options.
Result<void> take_option(Option option, std::string_view value, Request& request);

/// Arguments behind the plugin's name in plugstack.conf.
struct Arguments {
  std::string socket;               ///< of the daemon; %n is the name of the node
  std::string library;              ///< path of libgpuslice.so
  std::int64_t shards = 0;          ///< shards that each GPU has; 0: jobs with shards get no slice unasked
  std::vector<std::string> slices;  ///< below these any job may have its slice
  std::string dcgm;                 ///< directory of DCGM's job mapping; empty: none
  bool admin_comment = false;       ///< write what a job did on the GPU into its AdminComment
};

/// `node`: the name of the node, for %n.
Result<Arguments> read_arguments(const std::vector<std::string_view>& words, const std::string& node);

/// "/a/b/" as "a/b".
std::string without_slashes(std::string_view path);

}  // namespace gpuctl::slurm
