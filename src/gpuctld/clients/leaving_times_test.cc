#include "gpuctld/clients/leaving_times.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

using namespace std::chrono_literals;

TEST(LeavingTimes, TheLongestOfTheLatestCounts) {
  LeavingTimes times;
  EXPECT_EQ(times.longest(), 0ns);
  times.note(3ms, 1s);
  times.note(7ms, 1s);
  times.note(2ms, 1s);
  EXPECT_EQ(times.longest(), 7ms);
  for (std::size_t i = 0; i < LeavingTimes::kKept; ++i) times.note(1ms, 1s);
  EXPECT_EQ(times.longest(), 1ms);
}

TEST(LeavingTimes, WhoTakesTooLongGetsNoMoreTimeForIt) {
  LeavingTimes times;
  times.note(5ms, 1s);
  times.note(1001ms, 1s);
  EXPECT_EQ(times.longest(), 5ms);
}

}  // namespace
}  // namespace gpuctl::daemon
