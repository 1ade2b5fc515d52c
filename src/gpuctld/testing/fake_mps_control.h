// For tests: a control program of MPS. It answers from files in its directory, which is also the pipe directory, and
// writes down its commands.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace gpuctl::daemon {

class FakeMpsControl {
 public:
  FakeMpsControl() {
    std::string pattern = testing::TempDir() + "gpuctl-mps-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    // The files: `servers`; `clients.SERVER`; `terminate`, a command run for terminate_client; `asked`, the commands.
    write("nvidia-cuda-mps-control", R"(#!/bin/sh
cd "$CUDA_MPS_PIPE_DIRECTORY" || exit 9
read -r verb server client
echo "$verb $server $client" >> asked
case $verb in
  get_server_list) [ -e begin ] && . ./begin; cat servers ;;
  get_client_list) cat "clients.$server" ;;
  terminate_client) . ./terminate ;;
esac
)");
    ::chmod(program().c_str(), 0755);
    write("servers", "");
    write("terminate", "grep -vx \"$client\" clients.$server > left; mv left clients.$server\n");
  }
  ~FakeMpsControl() { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(directory_ + "/" + name) << text; }
  std::string read(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string program() const { return directory_ + "/nvidia-cuda-mps-control"; }
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
};

}  // namespace gpuctl::daemon
