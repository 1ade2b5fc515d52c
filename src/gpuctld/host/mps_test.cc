#include "gpuctld/host/mps.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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
  bool active(uid_t own = ::geteuid()) const { return mps_active_in(directory_, directory_ / "proc", own); }

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

}  // namespace
}  // namespace gpuctl::daemon
