// What `gpuctl run` adds to a program's environment, and where it finds the libraries.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpuctl::cli {

struct RunPlan {
  std::string socket;
  std::string slice;
  std::string library;                              ///< absolute path of libgpuslice.so
  std::string software_gpu;                         ///< directory of the software libcuda.so.1; empty: do not use it
  std::string ld_preload;                           ///< as it is now
  std::string ld_library_path;                      ///< as it is now
  std::optional<std::string> visible_devices = {};  ///< UUIDs of the GPUs that it is to see; none: as it would
};

/// The variables to set. The contents of LD_PRELOAD and LD_LIBRARY_PATH are kept, behind gpuctl's own. A `gpuctl run`
/// inside a `gpuctl run` does not make them longer.
std::vector<std::pair<std::string, std::string>> run_environment(const RunPlan& plan);

/// Absolute path of libgpuslice.so: GPUCTL_LIBGPUSLICE, else that of the build tree in which the executable `self`
/// lies, else the installed one. Fails if it is not a readable file or if ld.so cannot take its path.
Result<std::string> find_library(const std::string& self);

/// Directory of the software libcuda.so.1: GPUCTL_SOFTGPU, else that of the build tree, else the installed one.
Result<std::string> find_software_gpu(const std::string& self);

}  // namespace gpuctl::cli
