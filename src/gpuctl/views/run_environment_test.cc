#include "gpuctl/views/run_environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> environment(RunPlan plan) {
  const auto list = run_environment(plan);
  return {list.begin(), list.end()};
}

TEST(RunEnvironment, SetsWhatIsNeeded) {
  EXPECT_EQ(environment({"/run/s", "ls", "/lib/l.so", "", "", "/old"}),
            (std::map<std::string, std::string>{
                {"GPUCTL_SOCKET", "/run/s"}, {"GPUCTL_SLICE", "ls"}, {"LD_PRELOAD", "/lib/l.so"}}));
}

TEST(RunEnvironment, KeepsWhatIsThereBehindOurs) {
  const auto set = environment({"/s", "ls", "/l.so", "/soft", "a.so:/b.so c.so", "/x:/y;/z"});
  EXPECT_EQ(set.at("LD_PRELOAD"), "/l.so:a.so:/b.so:c.so");
  EXPECT_EQ(set.at("LD_LIBRARY_PATH"), "/soft:/x:/y:/z");
}

TEST(RunEnvironment, DoesNotGrowWhenNested) {
  const auto set = environment({"/s", "ls", "/l.so", "/soft", "/a.so:/l.so", "/x:/soft"});
  EXPECT_EQ(set.at("LD_PRELOAD"), "/l.so:/a.so");
  EXPECT_EQ(set.at("LD_LIBRARY_PATH"), "/soft:/x");
}

class FindLibrary : public testing::Test {
 protected:
  FindLibrary() {
    char name[] = "/tmp/gpuctl-find-XXXXXX";
    root_ = ::mkdtemp(name);
    ::unsetenv("GPUCTL_LIBGPUSLICE");
    ::unsetenv("GPUCTL_SOFTGPU");
  }
  ~FindLibrary() override {
    ::unsetenv("GPUCTL_LIBGPUSLICE");
    ::unsetenv("GPUCTL_SOFTGPU");
    fs::remove_all(root_);
  }
  std::string touch(const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "x";
    return root_ / path;
  }
  std::string self() { return root_ / "src/gpuctl/gpuctl"; }
  fs::path root_;
};

TEST_F(FindLibrary, InTheBuildTree) {
  const std::string library = touch("src/libgpuslice/libgpuslice.so");
  touch("softgpu/libcuda.so.1");
  EXPECT_EQ(*find_library(self()), library);
  EXPECT_EQ(*find_software_gpu(self()), root_ / "softgpu");
}

TEST_F(FindLibrary, AFolderOfThatNameWithoutADriverIsNone) {
  touch("softgpu/other.so");
  EXPECT_NE(find_software_gpu(self()).error().message.find("gpuctl/softgpu/libcuda.so.1;"), std::string::npos);
}

TEST_F(FindLibrary, OverriddenByTheEnvironment) {
  touch("src/libgpuslice/libgpuslice.so");
  const std::string other = touch("other.so");
  ::setenv("GPUCTL_LIBGPUSLICE", other.c_str(), 1);
  EXPECT_EQ(*find_library(self()), other);
}

TEST_F(FindLibrary, ErrorsNameThePathAndTheVariable) {
  ::setenv("GPUCTL_LIBGPUSLICE", "/nonexistent/l.so", 1);
  EXPECT_EQ(find_library(self()).error().message,
            "cannot read /nonexistent/l.so; install it or set GPUCTL_LIBGPUSLICE");
  const std::string spaced = touch("a b/l.so");
  ::setenv("GPUCTL_LIBGPUSLICE", spaced.c_str(), 1);
  EXPECT_NE(find_library(self()).error().message.find("holds a space, colon or semicolon"), std::string::npos);
  ::setenv("GPUCTL_SOFTGPU", "/nonexistent", 1);
  EXPECT_EQ(find_software_gpu(self()).error().message,
            "cannot read /nonexistent/libcuda.so.1; install it or set GPUCTL_SOFTGPU");
}

}  // namespace
}  // namespace gpuctl::cli
