#include "sched/pressure_trigger.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpuctl::sched::pressure_trigger_test {
namespace {

using std::chrono::milliseconds;

/// Looks each 100 ms, and returns when it was told: work waits from 1000 ms on for `ms` of each 100 ms.
std::vector<int> told(PressureTrigger trigger, int ms, int until) {
  std::vector<int> at;
  milliseconds total{500};  // of long ago
  for (int now = 0; now <= until; now += 100) {
    if (now > 1000) total += milliseconds(ms);
    if (trigger.passed(total, milliseconds(now))) at.push_back(now);
  }
  return at;
}

TEST(PressureTrigger, IsToldOnceInAWindowAsLongAsWorkWaits) {
  const PressureTrigger trigger(milliseconds(150), milliseconds(1000));
  EXPECT_EQ(told(trigger, 50, 3500), (std::vector{1300, 2300, 3300}));
}

TEST(PressureTrigger, IsNotToldOfLessNorOfWhatWasBefore) {
  const PressureTrigger trigger(milliseconds(150), milliseconds(1000));
  EXPECT_TRUE(told(trigger, 10, 10'000).empty());
  EXPECT_TRUE(told(trigger, 0, 10'000).empty());
}

TEST(PressureTrigger, WhatWaitedAtTheEndOfAWindowCountsInTheNext) {
  PressureTrigger trigger(milliseconds(150), milliseconds(1000));
  EXPECT_FALSE(trigger.passed(milliseconds(0), milliseconds(0)));
  EXPECT_FALSE(trigger.passed(milliseconds(100), milliseconds(1000)));
  EXPECT_TRUE(trigger.passed(milliseconds(160), milliseconds(1100)));
  EXPECT_EQ(trigger.stalled(), milliseconds(150));
}

/// The daemon was busy, or the machine slept.
TEST(PressureTrigger, OfALateLookAsMuchCountsAsIsTheMeanOfItsTime) {
  PressureTrigger trigger(milliseconds(150), milliseconds(1000));
  EXPECT_FALSE(trigger.passed(milliseconds(0), milliseconds(0)));
  EXPECT_FALSE(trigger.passed(milliseconds(1000), milliseconds(10'000)));
  EXPECT_EQ(trigger.stalled(), milliseconds(100));
  EXPECT_FALSE(trigger.passed(milliseconds(1010), milliseconds(10'100)));
}

}  // namespace
}  // namespace gpuctl::sched::pressure_trigger_test
