#include "slicefile/slice_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpuctl::slicefile {
namespace {

class SliceFileTest : public testing::Test {
 protected:
  ~SliceFileTest() override { std::filesystem::remove(file_); }
  SliceFile read(const std::string& text) {
    std::ofstream(file_) << text;
    return read_slice_file(file_);
  }
  const std::string file_ = testing::TempDir() + "slice_file_test." + std::to_string(::getpid()) + ".toml";
};

TEST_F(SliceFileTest, ParentsComeFirst) {
  const SliceFile file = read("[slice.\"a/b\"]\nweight = 5\n[slice.a-b]\n[slice.a]\nmax = \"none\"\n");
  EXPECT_EQ(file.problems, std::vector<std::string>());
  ASSERT_EQ(file.slices.size(), 3u);
  EXPECT_EQ(file.slices[0].path, "a");
  EXPECT_TRUE(file.slices[0].change.max_unlimited);
  EXPECT_EQ(file.slices[1].path, "a/b");
  EXPECT_EQ(file.slices[1].change.weight, 5);
}

TEST_F(SliceFileTest, ProblemsNameThePlaceAndTheField) {
  const SliceFile file = read("[daemon]\n[slice.a]\nweight = 0\nmost = 5\n");
  ASSERT_EQ(file.problems.size(), 3u);
  EXPECT_EQ(file.problems[0],
            file_ + ":1:2: daemon: only [slice] tables are known here; others belong into gpuctl.toml");
  EXPECT_TRUE(file.problems[1].starts_with(file_ + ":4:1: slice.\"a\".most: unknown key; known: ")) << file.problems[1];
  EXPECT_TRUE(file.problems[2].starts_with(file_ + ":3:10: slice.\"a\".weight: ")) << file.problems[2];
  EXPECT_TRUE(read("[slice.a\n").problems.at(0).starts_with(file_ + ":1:9: syntax: "));
  EXPECT_TRUE(read_slice_file("/nowhere/x.toml").problems.at(0).starts_with("/nowhere/x.toml: "));
}

TEST_F(SliceFileTest, WhatIsWrittenIsReadBack) {
  SliceSettings settings;
  std::int64_t number = 3;
  for (const SliceSetting& setting : kSliceSettings) {
    if (setting.is_per_gpu())
      continue;
    else if (setting.text != nullptr)
      settings.*setting.text = std::string(setting.text_default);
    else
      settings.*setting.number = ++number;
  }
  settings.memory_max.reset();
  settings.memory_unlimited = true;
  const SliceFile file = read(table_text("a/b.c", settings));
  EXPECT_EQ(file.problems, std::vector<std::string>());
  ASSERT_EQ(file.slices.size(), 1u);
  EXPECT_EQ(file.slices[0].path, "a/b.c");
  EXPECT_EQ(file.slices[0].change, settings);
}

TEST_F(SliceFileTest, AmountsOfSingleGpusAreWrittenWithTheirNumberAndReadBack) {
  const SliceSettings settings{.reserve = 0,
                               .reserve_per_gpu = "25%",
                               .max = 40,
                               .max_per_gpu = "1:16,2:none",
                               .memory_unlimited = true,
                               .memory_max_per_gpu = "0:16G"};
  const std::string text = table_text("a", settings);
  EXPECT_EQ(text, "[slice.\"a\"]\nreserve = \"25%\"\nmax = \"40,1:16,2:none\"\nmemory_max = \"0:16G\"\n");
  const SliceFile file = read(text);
  EXPECT_EQ(file.problems, std::vector<std::string>());
  EXPECT_EQ(file.slices.at(0).change, settings);
}

TEST_F(SliceFileTest, ThatNoGroupOwnsASliceIsWrittenAndReadBack) {
  const SliceSettings settings{.owner_uid = 1001, .owner_gid = kNoGroup};
  const std::string text = table_text("a", settings);
  EXPECT_EQ(text, "[slice.\"a\"]\nowner_uid = 1001\nowner_gid = \"none\"\n");
  const SliceFile file = read(text);
  EXPECT_EQ(file.problems, std::vector<std::string>());
  EXPECT_EQ(file.slices.at(0).change, settings);
  EXPECT_EQ(read("[slice.a]\nowner_gid = -1\n").problems.size(), 1u);
}

TEST_F(SliceFileTest, AUnitWhoseNameSystemdEscapedIsWrittenAndReadBack) {
  const SliceSettings settings{.join = "unit:a\\x2db.service,user:7"};
  const SliceFile file = read(table_text("a", settings));
  EXPECT_EQ(file.problems, std::vector<std::string>());
  EXPECT_EQ(file.slices.at(0).change, settings);
}

TEST_F(SliceFileTest, WhatIsNoAmountIsNamedWithItsPlace) {
  const SliceFile file = read("[slice.a]\nreserve = \"0:none\"\nmax = \"200%\"\nmemory_max_per_gpu = \"1:4G\"\n");
  ASSERT_EQ(file.problems.size(), 3u);
  EXPECT_TRUE(file.problems[0].starts_with(file_ + ":3:7: slice.\"a\".max: must be SMs or whole per cent"))
      << file.problems[0];
  EXPECT_TRUE(file.problems[1].starts_with(file_ + ":4:1: slice.\"a\".memory_max_per_gpu: unknown key"))
      << file.problems[1];
  EXPECT_TRUE(file.problems[2].starts_with(file_ + ":2:11: slice.\"a\".reserve: must be SMs or whole per cent"))
      << file.problems[2];
}

}  // namespace
}  // namespace gpuctl::slicefile
