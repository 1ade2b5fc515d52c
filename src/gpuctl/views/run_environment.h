// What `gpuctl run` adds to the environment of a program, and where it finds the libraries.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpuctl::cli {

struct RunPlan {
  std::string socket;
  std::string slice;
  std::string library;          ///< absolute path of libgpuslice.so
  std::string software_gpu;     ///< directory of the software libcuda.so.1; empty: not wanted
  std::string ld_preload;       ///< as it is now
  std::string ld_library_path;  ///< as it is now
  std::string connections;      ///< CUDA_DEVICE_MAX_CONNECTIONS, as it is now
  std::int64_t clients = 0;     ///< programs that the daemon has now
  bool mps = false;             ///< some GPU is shared under MPS
  bool needs_form = true;       ///< something in force needs its kernels to give SMs back
};

/// The variables to set. What LD_PRELOAD and LD_LIBRARY_PATH hold is kept, behind ours; running inside a `gpuctl run`
/// does not make them longer.
std::vector<std::pair<std::string, std::string>> run_environment(const RunPlan& plan);

/// Absolute path of libgpuslice.so: GPUCTL_LIBGPUSLICE, else the one of the build tree the executable at `self` lies
/// in, else the installed one. Fails when that is not a readable file or ld.so could not take its path.
Result<std::string> find_library(const std::string& self);

/// Directory of the software libcuda.so.1: GPUCTL_SOFTGPU, else of the build tree, else the installed one.
Result<std::string> find_software_gpu(const std::string& self);

}  // namespace gpuctl::cli
