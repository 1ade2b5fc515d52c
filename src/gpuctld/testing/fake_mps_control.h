// For tests: a control program of MPS. It answers from files in its directory, which is also the pipe directory, and
// writes down its commands.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
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
  ~FakeMpsControl() {
    std::filesystem::remove_all(directory_);
    if (daemon_ == 0) return;
    ::kill(daemon_, SIGKILL);
    ::waitpid(daemon_, nullptr, 0);
    ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    ::setenv("PATH", path_.c_str(), 1);
  }

  /// Makes this process take it for MPS: there is a process of MPS's name, and the environment names the directory.
  void serve() {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    daemon_ = ::fork();
    if (daemon_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::prctl(PR_SET_NAME, "nvidia-cuda-mps");
      (void)!::write(ends[1], "x", 1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char ready = 0;
    EXPECT_EQ(::read(ends[0], &ready, 1), 1);
    ::close(ends[0]);
    write("nvidia-cuda-mps-control.pid", std::to_string(daemon_));
    const char* path = std::getenv("PATH");
    path_ = path != nullptr ? path : "/usr/bin:/bin";
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", directory_.c_str(), 1);
    ::setenv("PATH", (directory_ + ":" + path_).c_str(), 1);
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(directory_ + "/" + name) << text; }
  std::string read(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string program() const { return directory_ + "/nvidia-cuda-mps-control"; }
  const std::string& directory() const { return directory_; }

  /// terminate_client as MPS refuses it to a user who did not start it.
  static constexpr char kRefuses[] = "echo 'Insufficient privileges for UID 7. Control deamon settings'; echo 800\n";

 private:
  std::string directory_, path_;
  pid_t daemon_ = 0;
};

}  // namespace gpuctl::daemon
