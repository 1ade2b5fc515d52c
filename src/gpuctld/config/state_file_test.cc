#include "gpuctld/config/state_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ipc/unique_fd.h"

namespace gpuctl::daemon {
namespace {

namespace fs = std::filesystem;

TEST(UnderstandState, OneBadFieldLeavesOutThatFieldAlone) {
  const auto loaded =
      understand_state(R"({"version":1,"slices":[{"path":"a","settings":{"weight":"x","priority":5,"colour":"red"}},)"
                       R"({"path":3,"settings":{}},7,{"path":"b"},{"path":"c","settings":{"max":9}}],)"
                       R"("configured":[{"path":"a","settings":3},{"path":"b","settings":"{}"}]})");
  EXPECT_EQ(loaded.left_out,
            (std::vector<std::string>{"slices[0].settings.weight must be an integer, not a string; left out",
                                      "slices[0].settings.colour is not known here; left out",
                                      "slices[1].path must be a string, not an integer; left out",
                                      "slices[2] must be an object; left out",
                                      "slices[3].settings must be an object; left out",
                                      "configured[0].settings must be a string, not an integer; left out"}));
  const auto& slices = loaded.state.slices;
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0].first, "a");
  EXPECT_EQ(slices[0].second, (ipc::SliceSettings{.priority = 5}));
  EXPECT_EQ(slices[1].first, "b");
  EXPECT_EQ(slices[2].second.max, 9);
  EXPECT_EQ(loaded.state.configured, (std::map<std::string, std::string>{{"b", "{}"}}));
}

TEST(UnderstandState, WhatIsNoStateIsLeftOutAsAWhole) {
  for (const char* text : {"", "{", "[]", "{\"version\": 2, \"slices\": [], \"configured\": []}",
                           "{\"slices\": [], \"configured\": []}"}) {
    const auto loaded = understand_state(text);
    EXPECT_EQ(loaded.left_out.size(), 1u) << text;
    EXPECT_EQ(loaded.text, text);
    EXPECT_TRUE(loaded.state.slices.empty());
  }
  EXPECT_EQ(understand_state("{\"version\": 1}").left_out.size(), 2u);
  const auto escaped = understand_state(
      "{\"version\":1,\"configured\":[],\"slices\":[{\"path\":\"a\",\"settings\":"
      "{\"\\n\":1}}]}");
  ASSERT_EQ(escaped.left_out.size(), 1u);
  EXPECT_EQ(escaped.left_out[0].find('\n'), std::string::npos);
}

class StateFile : public testing::Test {
 protected:
  StateFile() {
    std::string pattern = testing::TempDir() + "gpuctld-state-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    file_ = directory_ + "/state.json";
  }
  ~StateFile() override { fs::remove_all(directory_); }

  std::string directory_, file_;
};

TEST_F(StateFile, NoFileIsAnEmptyState) {
  const auto loaded = load_state(file_);
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->state.slices.empty() && loaded->left_out.empty());
}

TEST_F(StateFile, AFileThatCannotBeReadOrTrustedIsAnError) {
  fs::create_directory(file_);
  EXPECT_EQ(load_state(file_).error().message, file_ + ": is not a regular file");
  EXPECT_EQ(load_state("/proc/self/mem").error().message, "/proc/self/mem: cannot be read: Input/output error");
  fs::remove(file_);
  ASSERT_TRUE(replace_file(file_, "{}"));
  EXPECT_TRUE(load_state(file_));
  fs::permissions(file_, fs::perms::all);
  EXPECT_EQ(load_state(file_).error().message, file_ + ": other users may write to it, so it is not trusted");
}

TEST_F(StateFile, IsReplacedAsAWhole) {
  for (const char* text : {"first", "second, which is longer", "3rd"}) {
    ASSERT_TRUE(replace_file(file_, text));
    EXPECT_EQ(load_state(file_)->text, text);
    EXPECT_EQ(fs::status(file_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1) << "nothing else is left";
  }
}

/// Whether what was written to the file is in memory alone. False too where the file system does not say so.
bool waits_for_disk(const std::string& file) {
  const ipc::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  constexpr std::uint32_t kExtents = 8;
  alignas(fiemap) std::array<char, sizeof(fiemap) + kExtents * sizeof(fiemap_extent)> room{};
  auto* const map = reinterpret_cast<fiemap*>(room.data());
  map->fm_length = FIEMAP_MAX_OFFSET;
  map->fm_extent_count = kExtents;
  if (::ioctl(fd.get(), FS_IOC_FIEMAP, map) != 0) return false;
  for (std::uint32_t i = 0; i < map->fm_mapped_extents; ++i)
    if ((map->fm_extents[i].fe_flags & FIEMAP_EXTENT_DELALLOC) != 0) return true;
  return false;
}

/// A busy disk takes seconds, and meanwhile the daemon would serve nobody.
TEST_F(StateFile, ReplacingItBeginsNoWriteToTheDisk) {
  const std::string text(64 << 10, 'x');
  std::ofstream(directory_ + "/other") << text;
  if (!waits_for_disk(directory_ + "/other")) GTEST_SKIP() << "this file system does not say what is on the disk";
  bool in_memory = false;
  for (int i = 0; i < 20 && !in_memory; ++i) {  // the system may begin to write by itself
    for (int j = 0; j < 2; ++j) ASSERT_TRUE(replace_file(file_, text));
    in_memory = waits_for_disk(file_);
  }
  EXPECT_TRUE(in_memory);
}

}  // namespace
}  // namespace gpuctl::daemon
