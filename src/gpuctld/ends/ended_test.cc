#include "gpuctld/ends/ended.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpuctl::daemon {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(Ended, CountsForTheSliceAndForThoseAboveIt) {
  Ended ended;
  ended.add("a/b", {5, 2});
  ended.add("a", {1, 0});
  ended.add("/", {});
  EXPECT_EQ(ended.of("a/b").programs, 1);
  EXPECT_EQ(ended.of("a").programs, 2);
  EXPECT_EQ(ended.of("/").programs, 3);
  EXPECT_EQ(ended.of("a").counts.launches, 6);
  EXPECT_EQ(ended.of("/").counts.evictions, 2);
  EXPECT_EQ(ended.of("b").programs, 0);
}

TEST(Ended, NoProgramCanMakeASumOverflow) {
  Ended ended;
  for (int i = 0; i < 2; ++i) ended.add("/", {kMost, kMost});
  EXPECT_EQ(ended.of("/").counts.launches, kMost);
  EXPECT_EQ(ended.of("/").counts.evictions, kMost);
}

TEST(Ended, AProgramThatIsMovedHasNotEnded) {
  Ended ended;
  ended.moved("a/b", {5, 2});
  EXPECT_EQ(ended.of("a").programs, 0);
  EXPECT_EQ(ended.of("a").counts.launches, 5);
  EXPECT_EQ(ended.of("a/b").counts.evictions, 2);
}

TEST(Ended, ASliceThatIsGoneStaysInTheSumsAboveIt) {
  Ended ended;
  ended.add("a/b", {5, 2});
  ended.keep([](const std::string& slice) { return slice != "a/b"; });
  EXPECT_EQ(ended.of("a/b").programs, 0);
  EXPECT_EQ(ended.of("a").counts.launches, 5);
}

}  // namespace
}  // namespace gpuctl::daemon
