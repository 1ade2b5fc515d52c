#include "libgpuslice/image/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace gpuslice {
namespace {

std::string in_scratch(const char* name) {
  return std::filesystem::path(testing::TempDir()) / name;
}

TEST(ReadFile, GivesAllBytes) {
  const std::string path = in_scratch("read_file_bytes"), bytes("a\0b\n", 4);
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(read_file(path.c_str()), bytes);
  EXPECT_EQ(read_file(path.c_str(), 4), bytes);
  EXPECT_FALSE(read_file(path.c_str(), 3));
  std::filesystem::remove(path);
  EXPECT_FALSE(read_file(path.c_str()));
}

/// A reader of a pipe would take the bytes from whom they are for, or wait for ever.
TEST(ReadFile, LeavesAloneWhatIsNoRegularFile) {
  const std::string path = in_scratch("read_file_pipe");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(read_file(path.c_str()));
  std::filesystem::remove(path);
  EXPECT_FALSE(read_file(testing::TempDir().c_str()));
}

}  // namespace
}  // namespace gpuslice
