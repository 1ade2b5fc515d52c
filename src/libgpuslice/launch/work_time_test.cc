#include "libgpuslice/launch/work_time.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

TEST(WorkTime, AddsUpHowManyThereWereWhen) {
  WorkTime time;
  EXPECT_FALSE(time.known());
  time.set(8, 1000);
  EXPECT_TRUE(time.known());
  time.set(2, 1100);
  time.set(0, 1200);
  time.set(4, 1500);
  EXPECT_EQ(time.until(1600), 8 * 100 + 2 * 100 + 0 + 4 * 100);
}

TEST(WorkTime, CountsNothingBackwards) {
  WorkTime time;
  time.set(8, 1000);
  EXPECT_EQ(time.until(900), 0);
  time.set(2, 1100);
  EXPECT_EQ(time.until(1050), 800);
}

}  // namespace
}  // namespace gpuslice
