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

TEST(Recorder, ManyLaunchesAreReadInParts) {
  Recorder recorder;
  int reader = 0;
  recorder.read(&reader);
  for (std::size_t i = 0; i < ipc::kMostLaunchesInReply + 3; ++i)
    recorder.add({.launch = {.pid = static_cast<std::int64_t>(i)}});
  const Recorder::Part first = recorder.read(&reader), rest = recorder.read(&reader);
  EXPECT_EQ(first.launches.size(), ipc::kMostLaunchesInReply);
  EXPECT_TRUE(first.more);
  ASSERT_EQ(rest.launches.size(), 3u);
  EXPECT_EQ(rest.launches.front().launch.pid, static_cast<std::int64_t>(ipc::kMostLaunchesInReply));
  EXPECT_FALSE(rest.more);
  EXPECT_EQ(first.lost + rest.lost, 0u);
}

/// However long their names are.
TEST(Recorder, ASlowReaderLosesTheOldest) {
  Recorder recorder;
  int slow = 0;
  recorder.read(&slow);
  constexpr std::size_t kName = 1u << 20, kAdded = 2 * kMostKeptBytes / kName;
  for (std::size_t i = 0; i < kAdded; ++i)
    recorder.add({.launch = {.pid = static_cast<std::int64_t>(i), .kernel = std::string(kName, 'k')}});
  const Recorder::Part part = recorder.read(&slow);
  EXPECT_EQ(part.launches.size(), kMostKeptBytes / kName - 1);
  EXPECT_EQ(part.lost + part.launches.size(), kAdded);
  EXPECT_EQ(part.launches.front().launch.pid, static_cast<std::int64_t>(part.lost));
}

}  // namespace
}  // namespace gpuctl::daemon
