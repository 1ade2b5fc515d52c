#include "base/append_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace gpuctl {
namespace {

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void add(AppendFile& file, const char* letter) {
  ASSERT_EQ(write(file.descriptor(), letter, 1), 1);
}

TEST(AppendFile, IsNotWrittenToAFileThatHasItsNumber) {
  const std::string log = testing::TempDir() + "append-file.log", other = testing::TempDir() + "append-file.other";
  std::filesystem::remove(log);
  std::filesystem::remove(other);
  AppendFile file(log.c_str());
  add(file, "a");
  const int number = file.descriptor();
  const int opened = open(other.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(dup3(opened, number, O_CLOEXEC), number);
  add(file, "b");
  EXPECT_NE(file.descriptor(), number);
  add(file, "c");
  EXPECT_EQ(contents(log), "abc");
  EXPECT_EQ(contents(other), "");
}

TEST(AppendFile, IsThereOnlyIfItHasAName) {
  for (const char* none : {static_cast<const char*>(nullptr), "", "/proc/no such directory/file"}) {
    AppendFile file(none);
    EXPECT_FALSE(file.wanted());
    EXPECT_LT(file.descriptor(), 0);
  }
}

}  // namespace
}  // namespace gpuctl
