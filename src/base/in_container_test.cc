#include "base/in_container.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace gpuctl {
namespace {

TEST(InContainer, TheSliceIsTheNameOfAFile) {
  std::string directory = testing::TempDir() + "in-container-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  EXPECT_EQ(container_slice((directory + "/none").c_str()), "");
  EXPECT_EQ(container_slice(directory.c_str()), "");
  std::ofstream(directory + '/' + device_name("batch/train")) << "not read\n";
  EXPECT_EQ(container_slice(directory.c_str()), "batch/train");
  std::ofstream(directory + '/' + device_name("ls")) << "not read\n";
  EXPECT_EQ(container_slice(directory.c_str()), "batch/train");
  std::ofstream(directory + '/' + device_name("before"));
  EXPECT_EQ(container_slice(directory.c_str()), "batch/train") << "nothing is mounted there";
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace gpuctl
