#include "base/mps_home.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpuctl {
namespace {

namespace fs = std::filesystem;

/// What the control daemon of MPS v3 makes for a server with a namespace.
class MpsHome : public testing::Test {
 protected:
  MpsHome() {
    std::string pattern = testing::TempDir() + "mps-home-XXXXXX";
    home_ = ::mkdtemp(pattern.data());
    for (const char* directory : {".", "training", "training/batch"}) make_socket(home_ / directory / "control");
    std::ofstream(home_ / "nvidia-cuda-mps-control.pid") << "77\n";
  }
  ~MpsHome() override { fs::remove_all(home_); }

  static void make_socket(const fs::path& path) {
    fs::create_directories(path.parent_path());
    EXPECT_EQ(::mknod(path.c_str(), S_IFSOCK | 0666, 0), 0) << path;
  }

  fs::path home_;
};

TEST_F(MpsHome, OfAServerAndOfANamespace) {
  EXPECT_EQ(mps_home(home_), home_);
  EXPECT_EQ(mps_home(home_ / "training"), home_);
  EXPECT_EQ(mps_home(home_ / "training" / "batch"), home_);
  EXPECT_EQ(mps_home((home_ / "training" / "batch").string() + "//"), home_);
}

TEST_F(MpsHome, OfNothingElse) {
  fs::create_directory(home_ / "logs");
  EXPECT_EQ(mps_home(home_ / "logs"), home_ / "logs") << "nobody listens there";
  std::ofstream(home_ / "logs" / "control");
  EXPECT_EQ(mps_home(home_ / "logs"), home_ / "logs") << "it is no socket";
  make_socket(home_ / "training" / "batch" / "deeper" / "control");
  EXPECT_EQ(mps_home(home_ / "training/batch/deeper"), home_ / "training/batch/deeper");
  fs::remove(home_ / "nvidia-cuda-mps-control.pid");
  EXPECT_EQ(mps_home(home_ / "training" / "batch"), home_ / "training" / "batch");
  for (const char* odd : {"", "/", "relative", "/nonexistent"}) EXPECT_EQ(mps_home(odd), odd);
}

}  // namespace
}  // namespace gpuctl
