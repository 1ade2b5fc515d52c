#include "gpuctld/config/state_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

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
  ASSERT_TRUE(save_state(file_, {}));
  EXPECT_TRUE(load_state(file_));
  fs::permissions(file_, fs::perms::all);
  EXPECT_EQ(load_state(file_).error().message, file_ + ": other users may write to it, so it is not trusted");
}

}  // namespace
}  // namespace gpuctl::daemon
