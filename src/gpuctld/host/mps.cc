#include "gpuctld/host/mps.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace gpuctl::daemon {

bool mps_active() {
  return mps_active_in(mps_pipe_directory());
}

std::string mps_pipe_directory() {
  const char* directory = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return directory != nullptr && *directory != '\0' ? directory : "/tmp/nvidia-mps";
}

std::string mps_control_program() {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string program = directory + "/nvidia-cuda-mps-control";
    if (directory.starts_with('/') && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return "/usr/bin/nvidia-cuda-mps-control";
}

bool mps_active_in(const std::string& pipe_directory, const std::string& proc) {
  long pid = 0;
  if (!(std::ifstream(pipe_directory + "/nvidia-cuda-mps-control.pid") >> pid) || pid <= 0) return false;
  std::string command;
  // The kernel cuts the name after 15 characters.
  return std::getline(std::ifstream(proc + "/" + std::to_string(pid) + "/comm"), command) &&
         command == "nvidia-cuda-mps";
}

}  // namespace gpuctl::daemon
