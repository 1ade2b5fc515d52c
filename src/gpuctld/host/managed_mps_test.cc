#include "gpuctld/host/managed_mps.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gpuctld/host/mps.h"

namespace gpuctl::daemon::managed_mps_test {
namespace {

using namespace std::chrono_literals;

/// A control program whose daemon is a process of MPS's name that sleeps.
class ManagedMpsTest : public testing::Test {
 protected:
  ManagedMpsTest() {
    std::string pattern = testing::TempDir() + "gpuctl-managed-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    std::filesystem::copy_file("/bin/sleep", directory_ + "/nvidia-cuda-mps-sleeps");
    std::ofstream(directory_ + "/nvidia-cuda-mps-control") << R"sh(#!/bin/sh
cd "$CUDA_MPS_PIPE_DIRECTORY" || exit 9
[ -e refuses ] && { echo no GPU; exit 1; }
if [ "$1" = -d ]; then
  echo "$GPUCTL_MPS_SERVER $LD_PRELOAD" > asked
  ./nvidia-cuda-mps-sleeps 600 < /dev/null > /dev/null 2>&1 & echo $! > nvidia-cuda-mps-control.pid
else
  read -r verb; echo "$verb" >> commands; kill "$(cat nvidia-cuda-mps-control.pid)"
fi
)sh";
    ::chmod((directory_ + "/nvidia-cuda-mps-control").c_str(), 0755);
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", directory_.c_str(), 1);
    ::setenv("PATH", (directory_ + ":" + path_).c_str(), 1);
  }
  ~ManagedMpsTest() override {
    mps_.stop();
    end_mps();
    ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(directory_);
  }

  std::string text_of(const std::string& name) {
    std::ifstream file(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void end_mps() {
    if (const auto pid = mps_process_in(directory_, "/proc", ::geteuid())) ::kill(*pid, SIGKILL);
  }
  /// Asks for it, and returns whether an answer came.
  bool ask() {
    bool answered = false;
    if (!mps_.wait(this, [&] { answered = true; })) return false;
    run_until([&] { return answered; });
    return answered;
  }
  template <class Condition>
  void run_until(Condition condition) {
    for (int i = 0; i < 4000 && !condition(); ++i) {
      context_.restart();
      context_.run_for(5ms);
      std::this_thread::sleep_for(1ms);  // there may be nothing to run
    }
  }

  const std::string path_ = std::getenv("PATH");
  std::string directory_;
  boost::asio::io_context context_{1};
  std::vector<std::string> log_;
  ManagedMps mps_{context_, "/run/s", [this](const std::string& line) { log_.push_back(line); }, 300ms};
};

TEST_F(ManagedMpsTest, IsStartedForTheFirstProgramWithTheLibraryInside) {
  mps_.note_use(true);
  EXPECT_TRUE(ask());
  EXPECT_TRUE(mps_active());
  EXPECT_EQ(log_, std::vector<std::string>{"started MPS, with libgpuslice inside"});
  EXPECT_TRUE(text_of("asked").starts_with("/run/s "));
  EXPECT_NE(text_of("asked").find("libgpuslice.so"), std::string::npos);
  EXPECT_FALSE(ask()) << "there is one";
}

TEST_F(ManagedMpsTest, IsEndedWhenNobodyUsesIt) {
  mps_.note_use(true);
  ASSERT_TRUE(ask());
  context_.restart();
  context_.run_for(600ms);
  EXPECT_TRUE(mps_active());
  mps_.note_use(false);
  run_until([this] { return log_.size() == 2; });
  EXPECT_EQ(log_.back(), "ended MPS, which nobody used");
  EXPECT_EQ(text_of("commands"), "quit\n");
  EXPECT_TRUE(ask()) << "and started again for the next program";
}

TEST_F(ManagedMpsTest, OneThatEndsByItselfIsStartedAgainLater) {
  mps_.note_use(true);
  ASSERT_TRUE(ask());
  end_mps();
  run_until([this] { return log_.size() == 2; });
  EXPECT_EQ(log_.back(), "MPS has ended; it is started again for the next program");
  EXPECT_FALSE(ask()) << "not at once";
  run_until([this] { return ask(); });
  EXPECT_TRUE(mps_active());
}

TEST_F(ManagedMpsTest, WhereItCannotBeStartedProgramsDoWithout) {
  std::ofstream(directory_ + "/refuses") << "";
  EXPECT_TRUE(ask()) << "the answer comes all the same";
  EXPECT_FALSE(mps_active());
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("MPS was not started: "), std::string::npos) << log_[0];
  EXPECT_NE(log_[0].find("no GPU"), std::string::npos) << log_[0];
  EXPECT_FALSE(ask());
}

TEST_F(ManagedMpsTest, SomebodyElsesIsLeftAlone) {
  ASSERT_TRUE(ask());
  std::vector<std::string> said;
  ManagedMps other(
      context_, "/run/other", [&](const std::string& line) { said.push_back(line); }, 1ms);
  EXPECT_FALSE(other.wait(&other, [] {}));
  other.note_use(false);
  mps_.note_use(true);
  context_.restart();
  context_.run_for(300ms);
  EXPECT_TRUE(mps_active() && said.empty());
}

}  // namespace
}  // namespace gpuctl::daemon::managed_mps_test
