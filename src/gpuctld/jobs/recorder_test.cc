#include "gpuctld/jobs/recorder.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

TEST(Recorder, EachReaderGetsWhatEndedSinceItCame) {
  Recorder recorder;
  int a = 0, b = 0;
  recorder.add({.launch = {.pid = 1}});
  EXPECT_FALSE(recorder.wanted());
  EXPECT_TRUE(recorder.read(&a).launches.empty());
  EXPECT_TRUE(recorder.wanted());
  recorder.add({.launch = {.pid = 2}});
  EXPECT_TRUE(recorder.read(&b).launches.empty());
  recorder.add({.launch = {.pid = 3}});
  const auto first = recorder.read(&a).launches;
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].launch.pid, 2);
  EXPECT_EQ(first[1].launch.pid, 3);
  ASSERT_EQ(recorder.read(&b).launches.size(), 1u);
  EXPECT_TRUE(recorder.read(&a).launches.empty());
  recorder.forget(&a);
  recorder.forget(&b);
  EXPECT_FALSE(recorder.wanted());
}

TEST(Recorder, LaunchesInOriginalFormAreForThoseWhoAskForThem) {
  Recorder recorder;
  int asks = 0, asks_not = 0;
  recorder.read(&asks, true);
  recorder.read(&asks_not);
  recorder.add({.launch = {.pid = 1, .original = true}});
  recorder.add({.launch = {.pid = 2}});
  EXPECT_EQ(recorder.read(&asks, true).launches.size(), 2u);
  const auto others = recorder.read(&asks_not).launches;
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].launch.pid, 2);
}

TEST(Recorder, SaysWhatASlowReaderLost) {
  Recorder recorder;
  int slow = 0;
  recorder.read(&slow);
  for (std::size_t i = 0; i < kMostKept + 3; ++i) recorder.add({.launch = {.pid = static_cast<std::int64_t>(i)}});
  const Recorder::Part part = recorder.read(&slow);
  EXPECT_EQ(part.lost, 3u);
  ASSERT_EQ(part.launches.size(), kMostKept);
  EXPECT_EQ(part.launches.front().launch.pid, 3);
}

}  // namespace
}  // namespace gpuctl::daemon
