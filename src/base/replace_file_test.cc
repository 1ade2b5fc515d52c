#include "base/replace_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace gpuctl::replace_file_test {
namespace {

namespace fs = std::filesystem;

class ReplaceFile : public testing::Test {
 protected:
  ReplaceFile() {
    std::string pattern = testing::TempDir() + "gpuctl-replace-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~ReplaceFile() override { fs::remove_all(directory_); }
  static std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path directory_;
};

TEST_F(ReplaceFile, TheTextTakesThePlaceOfTheOneBefore) {
  const std::string file = directory_ / "a", unfinished = directory_ / "a.new";
  EXPECT_FALSE(replace_file(file, "one", unfinished));
  EXPECT_FALSE(replace_file(file, std::string(100'000, 'x'), unfinished, 0640));
  EXPECT_EQ(content(file).size(), 100'000u);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0640));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1) << "nothing unfinished stays";
}

TEST_F(ReplaceFile, ALinkOfTheUnfinishedNameLeadsNowhere) {
  std::ofstream(directory_ / "victim") << "mine";
  fs::create_symlink(directory_ / "victim", directory_ / "a.new");
  EXPECT_FALSE(replace_file(directory_ / "a", "text", directory_ / "a.new"));
  EXPECT_EQ(content(directory_ / "victim"), "mine");
  EXPECT_EQ(content(directory_ / "a"), "text");
}

TEST_F(ReplaceFile, WhatFailedIsNamedAndNothingStays) {
  const auto nowhere = replace_file(directory_ / "no/a", "text", directory_ / "no/a.new");
  ASSERT_TRUE(nowhere);
  EXPECT_EQ(nowhere->file, directory_ / "no/a.new");
  EXPECT_EQ(nowhere->error, ENOENT);
  fs::create_directory(directory_ / "a");
  const auto directory = replace_file(directory_ / "a", "text", directory_ / "a.new");
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->file, directory_ / "a");
  EXPECT_EQ(directory->error, EISDIR);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1);
}

}  // namespace
}  // namespace gpuctl::replace_file_test
