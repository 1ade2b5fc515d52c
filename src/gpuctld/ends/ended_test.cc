#include "gpuctld/ends/ended.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpuctl::daemon {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::vector<ipc::ClientUsage> two_devices(std::int64_t launches, std::int64_t evictions) {
  std::vector<ipc::ClientUsage> usage(2);
  usage[0].launches = launches;
  usage[1].evictions = evictions;
  return usage;
}

TEST(Ended, CountsForTheSliceAndForThoseAboveIt) {
  Ended ended;
  ended.add("a/b", two_devices(5, 2));
  ended.add("a", two_devices(1, 0));
  ended.add("/", {});
  EXPECT_EQ(ended.of("a/b").programs, 1);
  EXPECT_EQ(ended.of("a").programs, 2);
  EXPECT_EQ(ended.of("/").programs, 3);
  EXPECT_EQ(ended.of("a").launches, 6);
  EXPECT_EQ(ended.of("/").evictions, 2);
  EXPECT_EQ(ended.of("b").programs, 0);
}

TEST(Ended, NoProgramCanMakeASumOverflow) {
  Ended ended;
  for (int i = 0; i < 2; ++i) ended.add("/", two_devices(kMost, kMost));
  EXPECT_EQ(ended.of("/").launches, kMost);
  EXPECT_EQ(ended.of("/").evictions, kMost);
}

TEST(Ended, ASliceThatIsGoneStaysInTheSumsAboveIt) {
  Ended ended;
  ended.add("a/b", two_devices(5, 2));
  ended.keep([](const std::string& slice) { return slice != "a/b"; });
  EXPECT_EQ(ended.of("a/b").programs, 0);
  EXPECT_EQ(ended.of("a").launches, 5);
}

}  // namespace
}  // namespace gpuctl::daemon
