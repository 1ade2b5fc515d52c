#include "sched/pressure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace gpuctl::sched::pressure_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Pressure, NothingIsNoPressure) {
  Pressure pressure;
  EXPECT_EQ(pressure.at(seconds{5}).some.part[0], 0);
  pressure.note(false, false, seconds{5});
  EXPECT_EQ(pressure.at(seconds{500}).some.total.count(), 0);
  EXPECT_EQ(pressure.at(seconds{500}).full.part[2], 0);
}

TEST(Pressure, WhatAlwaysWaitsComesToOneAndWhatHasEndedIsForgotten) {
  Pressure pressure;
  pressure.note(true, false, seconds{100});
  const auto after_a_window = pressure.at(seconds{110});
  EXPECT_NEAR(after_a_window.some.part[0], 1 - std::exp(-1.0), 1e-9);
  EXPECT_NEAR(after_a_window.some.part[1], 1 - std::exp(-1.0 / 6), 1e-9);
  EXPECT_EQ(after_a_window.full.part[0], 0);
  EXPECT_GT(pressure.at(seconds{2000}).some.part[2], 0.99);
  EXPECT_EQ(pressure.at(seconds{2000}).some.total, seconds{1900});
  pressure.note(false, false, seconds{2000});
  const auto later = pressure.at(seconds{2060});
  EXPECT_LT(later.some.part[0], 0.01) << "of the last 10 s";
  EXPECT_GT(later.some.part[2], 0.8) << "of the last 300 s";
  EXPECT_EQ(later.some.total, seconds{1900});
}

TEST(Pressure, HalfOfTheTimeIsAHalfHoweverItIsCut) {
  Pressure pressure;
  for (int i = 0; i < 400'000; ++i) pressure.note(i % 2 == 0, i % 4 == 0, milliseconds{5 * i});
  const auto seen = pressure.at(seconds{2000});
  for (std::size_t i = 0; i < Pressure::kWindows.size(); ++i) {
    EXPECT_NEAR(seen.some.part[i], 0.5, 0.002) << i;
    EXPECT_NEAR(seen.full.part[i], 0.25, 0.002) << i;
  }
  EXPECT_EQ(seen.some.total, seconds{1000});
  EXPECT_EQ(seen.full.total, seconds{500});
}

/// To look changes nothing, nor to say again what is so.
TEST(Pressure, DoesNotDependOnWhenItIsLookedAt) {
  Random random(7);
  Pressure seldom, often;
  Pressure::Nanoseconds now{};
  for (int i = 0; i < 1000; ++i) {
    const bool some = random.below(2) == 0, full = some && random.below(2) == 0;
    seldom.note(some, full, now);
    for (int j = 0; j < 5; ++j) {
      often.note(some, full, now);
      now += milliseconds{1 + static_cast<std::int64_t>(random.below(50))};
      (void)often.at(now);
    }
  }
  for (std::size_t i = 0; i < Pressure::kWindows.size(); ++i) {
    EXPECT_DOUBLE_EQ(seldom.at(now).some.part[i], often.at(now).some.part[i]);
    EXPECT_LE(seldom.at(now).full.part[i], seldom.at(now).some.part[i]);
  }
  EXPECT_EQ(seldom.at(now).some.total, often.at(now).some.total);
}

TEST(Pressure, AClockThatStandsOrGoesBackAddsNothing) {
  Pressure pressure;
  pressure.note(true, true, seconds{10});
  EXPECT_EQ(pressure.at(seconds{10}).some.total.count(), 0);
  EXPECT_EQ(pressure.at(seconds{3}).some.total.count(), 0);
}

}  // namespace
}  // namespace gpuctl::sched::pressure_test
