#include "slicefile/drop_in.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace gpuctl::slicefile {
namespace {

namespace fs = std::filesystem;

class DropIn : public testing::Test {
 protected:
  DropIn() {
    std::string pattern = testing::TempDir() + "drop-in-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~DropIn() override { fs::remove_all(directory_); }
  static std::string content(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::string directory_;
};

TEST_F(DropIn, IsWrittenReplacedAndFound) {
  const std::string directory = directory_ + "/gpuctl.toml.d", file = drop_in_file(directory, "a/b");
  EXPECT_EQ(file, directory + "/a+b.toml");
  EXPECT_EQ(drop_in_file(directory, "/"), directory + "/+.toml");
  for (const std::string text : {"[slice.x]\n", "[slice.y]\n"}) {
    ASSERT_TRUE(write_drop_in(file, text));
    EXPECT_EQ(content(file), std::string(kSavedLine) + text);
  }
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0644));
  std::ofstream(directory + "/own.toml") << "# mine\n";
  std::ofstream(directory + "/empty.toml");
  EXPECT_EQ(saved_drop_ins(directory), std::vector<std::string>{file});  // nor is anything unfinished left
  EXPECT_TRUE(saved_drop_ins(directory_ + "/nowhere").empty());
}

TEST_F(DropIn, AFifoOrADeviceHoldsNobodyUp) {
  const std::string fifo = drop_in_file(directory_, "a"), saved = drop_in_file(directory_, "b");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", drop_in_file(directory_, "c"));
  ::alarm(60);
  ASSERT_TRUE(write_drop_in(saved, "[slice.b]\n"));
  EXPECT_EQ(saved_drop_ins(directory_), std::vector<std::string>{saved});
  EXPECT_FALSE(write_drop_in(fifo, "[slice.a]\n"));
  ::alarm(0);
}

TEST_F(DropIn, SomebodysOwnFileStays) {
  const std::string file = drop_in_file(directory_, "a");
  std::ofstream(file) << "# mine\n";
  const auto written = write_drop_in(file, "[slice.a]\n");
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().message.starts_with(file + ": was not written by")) << written.error().message;
  EXPECT_EQ(content(file), "# mine\n");
}

TEST_F(DropIn, FailuresNameTheFile) {
  std::ofstream(directory_ + "/file");
  const auto written = write_drop_in(directory_ + "/file/a.toml", "");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, directory_ + "/file/a.toml: cannot be written: Not a directory");
}

}  // namespace
}  // namespace gpuctl::slicefile
