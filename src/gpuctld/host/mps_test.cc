#include "gpuctld/host/mps.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <utility>

namespace gpuctl::daemon {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kStranger = 65534, kOwn = 12345;

/// A pipe directory and a /proc in which process 77 is MPS.
class Mps : public testing::Test {
 protected:
  Mps() {
    std::string pattern = testing::TempDir() + "gpuctld-mps-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    fs::create_directories(directory_ / "proc" / "77");
    process("nvidia-cuda-mps", "0\t0\t0\t0");
  }
  ~Mps() override { fs::remove_all(directory_); }

  void process(const std::string& name, const std::string& users) const {
    std::ofstream(directory_ / "proc" / "77" / "comm") << name << "\n";
    std::ofstream(directory_ / "proc" / "77" / "status") << "Name:\t" << name << "\nUid:\t" << users << "\n";
  }
  fs::path pid_file() const { return directory_ / "nvidia-cuda-mps-control.pid"; }
  void write_pid() const { std::ofstream(pid_file()) << "77\n"; }
  /// For the daemon of user `own`.
  bool active(uid_t own = ::geteuid()) const {
    return mps_process_in(directory_, directory_ / "proc", own).has_value();
  }

  fs::path directory_;
};

TEST_F(Mps, IsActiveWhenItsPidFileNamesALiveDaemon) {
  EXPECT_FALSE(active());
  write_pid();
  EXPECT_TRUE(active());
  process("bash", "0\t0\t0\t0");
  EXPECT_FALSE(active());
  fs::remove_all(directory_ / "proc" / "77");
  EXPECT_FALSE(active());
}

TEST_F(Mps, OfANamespaceItIsItsControlDaemons) {
  const fs::path space = directory_ / "training" / "batch";
  fs::create_directories(space);
  for (const fs::path& directory : {space.parent_path(), space})
    ASSERT_EQ(::mknod((directory / "control").c_str(), S_IFSOCK | 0666, 0), 0);
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", space.c_str(), 1);
  const std::string before = mps_pipe_directory();
  write_pid();
  const std::string now = mps_pipe_directory();
  ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  EXPECT_EQ(before, space);
  EXPECT_EQ(now, directory_);
}

TEST_F(Mps, TheFileMayHoldAnything) {
  for (const char* text : {"", "-77", "0", "seventy-seven", "99999999999999999999999999999999999977"}) {
    std::ofstream(pid_file()) << text;
    EXPECT_FALSE(active()) << text;
  }
}

TEST_F(Mps, AFifoOrALinkInPlaceOfTheFileIsNotWaitedForNorFollowed) {
  ASSERT_EQ(::mkfifo(pid_file().c_str(), 0666), 0);
  EXPECT_FALSE(active());
  fs::remove(pid_file());
  std::ofstream(directory_ / "elsewhere") << "77\n";
  fs::create_symlink(directory_ / "elsewhere", pid_file());
  EXPECT_FALSE(active());
}

TEST_F(Mps, AProcessOfAnotherUserDoesNotCount) {
  write_pid();
  const std::string own = std::to_string(::geteuid()), other = std::to_string(kStranger);
  process("nvidia-cuda-mps", own + "\t" + own + "\t" + own + "\t" + own);
  EXPECT_TRUE(active());
  process("nvidia-cuda-mps", other + "\t" + other + "\t" + other + "\t" + other);
  EXPECT_FALSE(active());
  process("nvidia-cuda-mps", other + "\t0\t0\t0");  // a set-uid program that another user started
  EXPECT_FALSE(active());
  process("nvidia-cuda-mps", "0\t0");
  EXPECT_FALSE(active());
}

TEST_F(Mps, AFileOfAnotherUserDoesNotCount) {
  write_pid();
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(pid_file().c_str(), kStranger, kStranger), 0);
  }
  EXPECT_FALSE(active(kOwn));
  EXPECT_TRUE(active(::geteuid() == 0 ? kStranger : ::geteuid()));  // the daemon is that user's own
}

/// A process that waits until it is ended, or this one ends.
class Waiting {
 public:
  Waiting() : pid_(::fork()) {
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) ::pause();
    }
  }
  ~Waiting() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST_F(Mps, AWatchLooksAtTheFilesOnceAndThenForTheEndOfTheProcess) {
  Waiting mps;
  MpsWatch watch(directory_ / "proc", ::geteuid());
  EXPECT_FALSE(watch.active(directory_));
  fs::rename(directory_ / "proc" / "77", directory_ / "proc" / std::to_string(mps.pid()));
  std::ofstream(pid_file()) << mps.pid() << "\n";
  EXPECT_TRUE(watch.active(directory_));
  fs::remove_all(directory_ / "proc");
  EXPECT_TRUE(watch.active(directory_));
  EXPECT_FALSE(watch.active(directory_ / "another"));
  EXPECT_FALSE(watch.active(directory_));  // another process may be there by now, so the files are looked at again
}

TEST_F(Mps, AWatchSeesTheEndAndTheNextOne) {
  Waiting mps, next;
  MpsWatch watch(directory_ / "proc", ::geteuid());
  fs::copy(directory_ / "proc" / "77", directory_ / "proc" / std::to_string(next.pid()));
  fs::rename(directory_ / "proc" / "77", directory_ / "proc" / std::to_string(mps.pid()));
  std::ofstream(pid_file()) << mps.pid() << "\n";
  EXPECT_TRUE(watch.active(directory_));
  mps.end();
  fs::remove_all(directory_ / "proc" / std::to_string(mps.pid()));
  fs::remove(pid_file());
  EXPECT_FALSE(watch.active(directory_));
  std::ofstream(pid_file()) << next.pid() << "\n";
  EXPECT_TRUE(watch.active(directory_));
}

TEST_F(Mps, AWatchOfAProcessThatCannotBeOpenedLooksAtTheFilesEachTime) {
  write_pid();
  process("nvidia-cuda-mps", "0\t0\t0\t0");
  MpsWatch watch(directory_ / "proc", ::geteuid());
  Waiting gone;
  const pid_t number = gone.pid();
  gone.end();
  fs::rename(directory_ / "proc" / "77", directory_ / "proc" / std::to_string(number));
  std::ofstream(pid_file()) << number << "\n";
  EXPECT_TRUE(watch.active(directory_));
  fs::remove(pid_file());
  EXPECT_FALSE(watch.active(directory_));
}

}  // namespace
}  // namespace gpuctl::daemon
