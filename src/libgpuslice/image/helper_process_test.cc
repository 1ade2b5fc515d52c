#include "libgpuslice/image/helper_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace gpuslice {
namespace {

std::atomic<int> child_signals{0};

class HelperProcessTest : public testing::Test {
 protected:
  HelperProcessTest() {
    char name[] = "/tmp/gpuctl-helper-test.XXXXXX";
    scratch_ = mkdtemp(name);
  }
  ~HelperProcessTest() override { std::filesystem::remove_all(scratch_); }

  /// A program that writes to its descriptor 3 and creates a file when it is done.
  std::string script(const std::string& commands) {
    const std::string path = scratch_ / "program";
    std::ofstream(path) << "#!/bin/sh\n" << commands << "\ntouch " << (scratch_ / "done").string() << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  bool done() const {
    for (int i = 0; i < 10000 && !std::filesystem::exists(scratch_ / "done"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::filesystem::exists(scratch_ / "done");
  }

  std::filesystem::path scratch_;
};

/// Above all descriptors that the shell opens for itself.
constexpr int kHigh = 40;

std::string content(int file) {
  char text[4096];
  const ssize_t got = pread(file, text, sizeof text, 0);
  return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : "";
}

TEST_F(HelperProcessTest, HasItsDescriptorsAndNoOthers) {
  const int first = memfd_create("first", MFD_CLOEXEC), second = memfd_create("second", MFD_CLOEXEC);
  const int zero = open("/dev/zero", O_RDONLY);
  const int other = fcntl(zero, F_DUPFD, kHigh);  // not closed by exec()
  ASSERT_GE(other, kHigh);
  const int descriptors[] = {second, first};
  const auto pid =
      start_unseen(script("echo $1 >&3; readlink /proc/$$/fd/0 >&4; ls /proc/$$/fd | tr '\\n' ' ' >&4"), descriptors);
  ASSERT_TRUE(pid) << pid.error().message;
  ASSERT_TRUE(done());
  EXPECT_EQ(content(second), "2\n");
  EXPECT_TRUE(content(first).starts_with("/dev/null\n")) << content(first);
  EXPECT_NE(content(first).find(" 2 3 4 "), std::string::npos) << content(first);
  EXPECT_EQ(content(first).find(' ' + std::to_string(other) + ' '), std::string::npos) << content(first);
  close(other);
  close(zero);
}

TEST_F(HelperProcessTest, IsNoChildOfTheProgram) {
  struct sigaction count {
  }, before{};
  count.sa_handler = [](int) { ++child_signals; };
  sigaction(SIGCHLD, &count, &before);
  const auto pid = start_unseen(script(""), {});
  ASSERT_TRUE(pid) << pid.error().message;
  ASSERT_TRUE(done());
  errno = 0;
  EXPECT_EQ(waitpid(-1, nullptr, 0), -1);
  EXPECT_EQ(errno, ECHILD);
  EXPECT_EQ(child_signals, 0);
  sigaction(SIGCHLD, &before, nullptr);
}

TEST_F(HelperProcessTest, HasASessionOfItsOwnAndNoPreload) {
  setenv("LD_PRELOAD", "/nowhere/libnothing.so", 1);
  const int out = memfd_create("out", MFD_CLOEXEC);
  const auto pid =
      start_unseen(script("echo \"[$LD_PRELOAD]\" >&3; cut -d' ' -f6 /proc/$$/stat >&3; echo $$ >&3"), {&out, 1});
  unsetenv("LD_PRELOAD");
  ASSERT_TRUE(pid) << pid.error().message;
  ASSERT_TRUE(done());
  const std::string own = std::to_string(*pid);
  EXPECT_EQ(content(out), "[]\n" + own + '\n' + own + '\n');
  close(out);
}

TEST_F(HelperProcessTest, AFileThatCannotBeRunEndsAtOnce) {
  const auto pid = start_unseen(scratch_ / "missing", {});
  ASSERT_TRUE(pid) << pid.error().message;
  for (int i = 0; i < 5000 && kill(*pid, 0) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // In a container whose init does not wait for adopted processes, a zombie remains.
  std::ifstream status("/proc/" + std::to_string(*pid) + "/stat");
  std::string line;
  if (std::getline(status, line)) {
    EXPECT_NE(line.find(") Z"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace gpuslice
