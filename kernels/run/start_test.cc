#include "kernels/run/start.h"

#include <gtest/gtest.h>

#include "kernels/timing/clock.h"

namespace gpuctl::bench {
namespace {

TEST(Start, AtOnceIsNow) {
  const std::int64_t before = now_ns();
  const std::int64_t start = wait_for({}, false);
  EXPECT_GE(start, before);
  EXPECT_LE(start, now_ns());
}

TEST(Start, WaitsForTheTime) {
  const std::int64_t at = now_ns() + 20'000'000;
  EXPECT_EQ(wait_for({.at_ns = at}, false), at);
  EXPECT_GE(now_ns(), at);
}

TEST(Start, ATimeThatIsOverIsKept) {
  EXPECT_EQ(wait_for({.at_ns = 5}, false), 5);
}

TEST(Start, AStopRequestEndsTheWait) {
  const std::int64_t far = now_ns() + 3'600'000'000'000;
  EXPECT_EQ(wait_for({.at_ns = far}, true), far);
  EXPECT_LT(now_ns(), far);
}

}  // namespace
}  // namespace gpuctl::bench
