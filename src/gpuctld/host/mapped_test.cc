#include "gpuctld/host/mapped.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace gpuctl::daemon {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr char kLibraryLine[] = "7f0000000000-7f0000001000 r-xp 00000000 fe:00 7 /opt/lib/libgpuslice.so.0\n";
constexpr char kDriverLine[] = "7f0000002000-7f0000003000 r-xp 00000000 fe:00 8 /usr/lib/libcuda.so.580.1\n";

/// Directories of processes, as /proc has them.
struct MappedTest : testing::Test {
  MappedTest() {
    std::string pattern = testing::TempDir() + "mapped-XXXXXX";
    proc_ = ::mkdtemp(pattern.data());
  }
  ~MappedTest() override { fs::remove_all(proc_); }

  std::string maps_of(const GpuUser& user) {
    const fs::path directory = proc_ / std::to_string(user.pid);
    fs::create_directory(directory);
    users_.push_back(user);
    return directory / "maps";
  }
  void has(const GpuUser& user, const std::string& lines) { std::ofstream(maps_of(user)) << lines; }
  /// Who opens its file waits without end.
  void is_stuck(const GpuUser& user) { EXPECT_EQ(::mkfifo(maps_of(user).c_str(), 0600), 0); }

  fs::path proc_;
  std::vector<GpuUser> users_;
};

TEST_F(MappedTest, TheDriverIsSeenAndTheLibrary) {
  has({.pid = 4}, kDriverLine);
  has({.pid = 5}, std::string(kDriverLine) + kLibraryLine);
  has({.pid = 6}, "");
  users_.push_back({.pid = 7});  // which has ended
  const auto mapped = mapped_by(users_, {}, proc_);
  ASSERT_EQ(mapped.size(), 4u);
  EXPECT_TRUE(mapped.at(4).driver && !mapped.at(4).library);
  EXPECT_TRUE(mapped.at(5).library);
  for (const std::int32_t pid : {6, 7}) EXPECT_TRUE(!mapped.at(pid).driver && !mapped.at(pid).library);
}

TEST_F(MappedTest, WhoseMappingsCannotBeReadHidesItselfAlone) {
  is_stuck({.pid = 4, .uid = 1000});
  has({.pid = 5, .uid = 1000}, kDriverLine);
  has({.pid = 6, .uid = 1001}, kDriverLine);
  const auto mapped = mapped_by(users_, {}, proc_);
  ASSERT_EQ(mapped.size(), 3u);
  EXPECT_FALSE(mapped.at(4).driver);
  EXPECT_TRUE(mapped.at(5).driver);
  EXPECT_TRUE(mapped.at(6).driver);
}

TEST_F(MappedTest, AUserWhoseProcessesTakeLongTakesNoTimeFromOthers) {
  for (std::int32_t pid = 1; pid <= 9; ++pid) is_stuck({.pid = pid, .uid = 1000});
  for (std::int32_t pid = 10; pid <= 12; ++pid) has({.pid = pid, .uid = 1001}, kDriverLine);
  const auto mapped = mapped_by(users_, {.one = 300ms, .all = 900ms}, proc_);
  EXPECT_LT(mapped.size(), users_.size());
  for (std::int32_t pid = 10; pid <= 12; ++pid) EXPECT_TRUE(mapped.contains(pid)) << pid;
}

}  // namespace
}  // namespace gpuctl::daemon
