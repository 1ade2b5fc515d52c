#include "gpuctld/mps.h"

#include <cstdlib>
#include <fstream>

namespace gpuctl::daemon {

bool mps_active() {
  const char* directory = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return mps_active_in(directory != nullptr && *directory != '\0' ? directory : "/tmp/nvidia-mps");
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
