#include "slicefile/drop_in.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace gpuctl::slicefile {
namespace {

namespace fs = std::filesystem;

class DropIns : public testing::Test {
 protected:
  DropIns() {
    std::string pattern = testing::TempDir() + "drop-in-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~DropIns() override { fs::remove_all(directory_); }
  static std::string content(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::string directory_;
};

TEST_F(DropIns, IsWrittenReplacedAndFound) {
  const std::string directory = directory_ + "/gpuctl.toml.d", file = drop_in_file(directory, "a/b");
  EXPECT_EQ(file, directory + "/a+b.toml");
  EXPECT_EQ(drop_in_file(directory, "/"), directory + "/+.toml");
  for (const std::string text : {"[slice.x]\n", "[slice.y]\n"}) {
    ASSERT_TRUE(write_drop_ins({{file, text}}));
    EXPECT_EQ(content(file), std::string(kSavedLine) + text);
  }
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0644));
  std::ofstream(directory + "/own.toml") << "# mine\n";
  std::ofstream(directory + "/empty.toml");
  EXPECT_EQ(saved_drop_ins(directory), std::vector<std::string>{file});  // nor is anything unfinished left
  EXPECT_TRUE(saved_drop_ins(directory_ + "/nowhere").empty());
}

TEST_F(DropIns, AFifoOrADeviceHoldsNobodyUp) {
  const std::string fifo = drop_in_file(directory_, "a"), saved = drop_in_file(directory_, "b");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", drop_in_file(directory_, "c"));
  ::alarm(60);
  ASSERT_TRUE(write_drop_ins({{saved, "[slice.b]\n"}}));
  EXPECT_EQ(saved_drop_ins(directory_), std::vector<std::string>{saved});
  EXPECT_FALSE(write_drop_ins({{fifo, "[slice.a]\n"}}));
  ::alarm(0);
}

TEST_F(DropIns, SomebodysOwnFileStays) {
  const std::string file = drop_in_file(directory_, "b"), other = drop_in_file(directory_, "a");
  std::ofstream(file) << "# mine\n";
  const auto written = write_drop_ins({{other, "[slice.a]\n"}, {file, "[slice.b]\n"}});
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().message.starts_with(file + ": was not written by")) << written.error().message;
  EXPECT_EQ(content(file), "# mine\n");
  EXPECT_FALSE(fs::exists(other)) << "and the rest is not written by halves";
}

TEST_F(DropIns, APathThatIsTooLongForAFilesNameIsWrittenToo) {
  std::string path(64, 'a');
  for (int level = 1; level < 8; ++level) path += '/' + std::string(64, 'a');
  std::vector<DropIn> drop_ins;
  for (const std::string end : {"a", "b"}) {
    path.back() = end[0];
    drop_ins.push_back({drop_in_file(directory_, path), "[slice.\"" + path + "\"]\n"});
    EXPECT_EQ(fs::path(drop_ins.back().file).filename().string().size(), NAME_MAX);
  }
  ASSERT_NE(drop_ins[0].file, drop_ins[1].file);
  ASSERT_TRUE(write_drop_ins(drop_ins));
  for (const auto& [file, text] : drop_ins) EXPECT_EQ(content(file), std::string(kSavedLine) + text);
  EXPECT_EQ(saved_drop_ins(directory_).size(), 2U);
  const std::string longest(NAME_MAX - 5, 'a');
  EXPECT_EQ(drop_in_file("d", longest), "d/" + longest + ".toml");
  EXPECT_TRUE(write_drop_ins({{drop_in_file(directory_, longest), ""}}));
}

TEST_F(DropIns, FailuresNameTheFile) {
  std::ofstream(directory_ + "/file");
  const auto written = write_drop_ins({{directory_ + "/file/a.toml", ""}});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, directory_ + "/file/a.toml: cannot be written: Not a directory");
}

}  // namespace
}  // namespace gpuctl::slicefile
