// Where CUDA MPS has its files.
#pragma once

#include <sys/stat.h>

#include <string>

namespace gpuctl {

/// The directory of MPS's control daemon, where its pid file is, for what a program has in CUDA_MPS_PIPE_DIRECTORY.
/// With MPS v3 that may be the directory of a server, or of a namespace in it: each has a socket `control`, and the
/// daemon's directory is one or two above. As it is given, where none is found.
inline std::string mps_home(const std::string& pipe_directory) {
  constexpr int kDeepest = 2;
  std::string directory = pipe_directory;
  for (int depth = 0; directory.starts_with('/'); ++depth) {
    while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
    struct stat found {};
    if (::lstat((directory + "/nvidia-cuda-mps-control.pid").c_str(), &found) == 0)
      return depth == 0 ? pipe_directory : directory;
    if (depth == kDeepest || ::lstat((directory + "/control").c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) break;
    directory.resize(directory.rfind('/'));
  }
  return pipe_directory;
}

}  // namespace gpuctl
