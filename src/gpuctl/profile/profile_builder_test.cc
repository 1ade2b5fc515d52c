#include "gpuctl/profile/profile_builder.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

ipc::Launch launch(double ran_us, double sms, std::int64_t input_bytes = 4096) {
  return {.alone_us = ran_us * sms / 8,
          .block_task_us = 5,
          .key = "00000000000000aa",
          .blocks = 80,
          .threads = 256,
          .input_bytes = input_bytes,
          .sms = sms,
          .ran_us = ran_us};
}

const std::vector<ipc::KernelDurations> kKnown{
    {.name = "k", .module = "m", .evict_us = 33, .uid = 0, .key = "00000000000000aa"}};

TEST(ProfileBuilder, TakesTimesAloneFromWholeRunsAndTheCurveFromAll) {
  ProfileBuilder builder;
  builder.add(launch(100, 8), true);
  builder.add(launch(120, 8), true);
  builder.add(launch(500, 2), false);
  EXPECT_EQ(builder.nameless(), 1u);
  EXPECT_TRUE(builder.finish().empty()) << "nobody knows its name";
  builder.add(kKnown);
  EXPECT_EQ(builder.nameless(), 0u);
  const auto profiles = builder.finish();
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_EQ(profiles[0].name, "k");
  EXPECT_EQ(profiles[0].module, "m");
  EXPECT_DOUBLE_EQ(profiles[0].block_task_us, 5);
  EXPECT_DOUBLE_EQ(profiles[0].evict_us, 33);
  ASSERT_EQ(profiles[0].inputs.size(), 1u);
  EXPECT_EQ(profiles[0].inputs[0].launches, 2);
  EXPECT_EQ(profiles[0].inputs[0].input_bytes, 4096);
  EXPECT_DOUBLE_EQ(profiles[0].inputs[0].alone_us, 110);
  ASSERT_EQ(profiles[0].curve.size(), 2u);
  EXPECT_EQ(profiles[0].curve[0].sms, 2);
  EXPECT_DOUBLE_EQ(profiles[0].curve[0].block_task_us, 500.0 / 80);
  EXPECT_DOUBLE_EQ(profiles[0].curve[1].block_task_us, 110.0 / 80);
}

TEST(ProfileBuilder, KernelsThatNeverHadAllSmsAreKnownByTheirPart) {
  ProfileBuilder builder;
  builder.add(launch(400, 2), false);
  builder.add(kKnown);
  ASSERT_EQ(builder.finish()[0].inputs.size(), 1u);
  EXPECT_DOUBLE_EQ(builder.finish()[0].inputs[0].alone_us, 100);
}

TEST(ProfileBuilder, LaunchesInOriginalFormMakeACurveOnlyWhereNoOtherIs) {
  ipc::Launch original = launch(100, 8);
  original.original = true;
  ProfileBuilder alone, both;
  alone.add(original, true);
  alone.add(kKnown);
  ASSERT_EQ(alone.finish()[0].curve.size(), 1u);
  both.add(original, true);
  both.add(launch(500, 2), false);
  both.add(kKnown);
  ASSERT_EQ(both.finish()[0].curve.size(), 1u);
  EXPECT_EQ(both.finish()[0].curve[0].sms, 2);
}

TEST(ProfileBuilder, AddsToAnEarlierProfile) {
  ProfileBuilder first;
  first.add(launch(100, 8), true);
  first.add(kKnown);
  ProfileBuilder second(first.finish());
  second.add(launch(200, 8), true);
  second.add(launch(900, 8, 8192), true);
  second.add(kKnown);
  const auto profiles = second.finish();
  ASSERT_EQ(profiles.size(), 1u);
  ASSERT_EQ(profiles[0].inputs.size(), 2u);
  EXPECT_EQ(profiles[0].inputs[0].launches, 2);
  EXPECT_DOUBLE_EQ(profiles[0].inputs[0].alone_us, 150);
  EXPECT_EQ(profiles[0].inputs[1].input_bytes, 8192);
  EXPECT_EQ(profiles[0].curve[0].launches, 3);
}

TEST(ProfileBuilder, KeepsTheMostLaunchedInputs) {
  ProfileBuilder builder;
  for (std::int64_t i = 1; i <= 150; ++i)
    for (int times = 0; times < (i > 140 ? 2 : 1); ++times) builder.add(launch(100, 8, 1024 * i), true);
  builder.add(kKnown);
  const auto inputs = builder.finish()[0].inputs;
  ASSERT_EQ(inputs.size(), ipc::kMostProfileInputs);
  EXPECT_EQ(inputs.back().input_bytes, 1024 * 150);
  EXPECT_EQ(inputs.back().launches, 2);
}

TEST(ProfileBuilder, LeavesOutWhatSaysNothing) {
  ProfileBuilder builder;
  builder.add(launch(100, 0), true);  // nobody knows its SMs
  ipc::Launch strange = launch(100, 8);
  strange.key.clear();  // of another user
  builder.add(strange, true);
  builder.add(kKnown);
  ASSERT_EQ(builder.finish().size(), 1u);
  EXPECT_TRUE(builder.finish()[0].curve.empty());
}

}  // namespace
}  // namespace gpuctl::cli
