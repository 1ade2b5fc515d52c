#include "slurm/node.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace gpuctl::slurm {
namespace {

namespace fs = std::filesystem;

class SlurmNode : public testing::Test {
 protected:
  SlurmNode() {
    std::string pattern = testing::TempDir() + "gpuctl-slurm-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~SlurmNode() override { fs::remove_all(directory_); }

  void process(int pid, const std::string& comm, const std::string& command) const {
    const fs::path own = directory_ / std::to_string(pid);
    fs::create_directory(own);
    std::ofstream(own / "comm") << comm << '\n';
    std::ofstream(own / "cmdline", std::ios::binary) << command;
  }
  std::string file(const std::string& name) const {
    std::ifstream in(directory_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path directory_;
};

TEST_F(SlurmNode, JobsAreNamedByTheirSlurmstepd) {
  process(1, "systemd", "/sbin/init");
  process(20, "slurmstepd", "slurmstepd: [12.0]   ");
  process(21, "slurmstepd", "slurmstepd: [12.batch]");
  process(22, "slurmstepd", "slurmstepd: [7.extern]");
  process(23, "slurmstepd", std::string("/usr/sbin/slurmstepd\0spank\0prolog\0", 35));
  process(24, "slurmstepd", "");
  process(25, "bash", "slurmstepd: [99.0]");
  EXPECT_EQ(living_jobs(directory_), (std::set<std::uint32_t>{7, 12}));
}

TEST_F(SlurmNode, OneThatHasNotSaidWhoseItIsMayBeAnybodys) {
  process(20, "slurmstepd", "slurmstepd: [12.0]");
  process(21, "slurmstepd", std::string("/usr/sbin/slurmstepd\0", 21));
  EXPECT_EQ(living_jobs(directory_), std::nullopt);
  EXPECT_EQ(living_jobs(directory_ / "none"), std::nullopt);
}

TEST_F(SlurmNode, DcgmHasALineForEachJobOfAGpu) {
  const std::string maps = directory_ / "maps";
  ASSERT_TRUE(tell_dcgm(maps, "0,1", 7, true));
  ASSERT_TRUE(tell_dcgm(maps, "1", 8, true));
  ASSERT_TRUE(tell_dcgm(maps, "1", 8, true));
  EXPECT_EQ(file("maps/0"), "7\n");
  EXPECT_EQ(file("maps/1"), "7\n8\n");
  ASSERT_TRUE(tell_dcgm(maps, "0,1", 7, false));
  EXPECT_EQ(file("maps/0"), "");
  EXPECT_EQ(file("maps/1"), "8\n");
}

TEST_F(SlurmNode, DcgmsFilesStayInTheirDirectory) {
  EXPECT_FALSE(tell_dcgm(directory_, "../0", 7, true));
  fs::create_symlink(directory_ / "elsewhere", directory_ / "3");
  EXPECT_FALSE(tell_dcgm(directory_, "3", 7, true));
  EXPECT_FALSE(fs::exists(directory_ / "elsewhere"));
}

TEST(SlurmPreload, IsKeptBehindTheUsersOwn) {
  EXPECT_EQ(preload_behind("", "/l.so"), "/l.so");
  EXPECT_EQ(preload_behind("/a.so /b.so", "/l.so"), "/a.so:/b.so:/l.so");
  EXPECT_EQ(preload_behind("/l.so:/a.so", "/l.so"), "/a.so:/l.so") << "once, as a job within a job has it already";
  EXPECT_EQ(preload_without("/a.so:/l.so", "/l.so"), "/a.so");
  EXPECT_EQ(preload_without("/l.so", "/l.so"), "");
}

}  // namespace
}  // namespace gpuctl::slurm
