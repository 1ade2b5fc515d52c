#include "kernels/timing/arrival.h"

#include <gtest/gtest.h>

namespace gpuctl::bench {
namespace {

TEST(Schedule, BackToBackIsAlwaysDue) {
  Schedule schedule(Arrival::kBackToBack, 1000, 1, 1, 500);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(schedule.due_ns(), 500);
    schedule.advance();
  }
}

TEST(Schedule, PeriodicDoesNotDrift) {
  Schedule schedule(Arrival::kPeriodic, 0.5, 1, 1, 7'000);
  for (int i = 0; i < 1'000'000; ++i) schedule.advance();
  EXPECT_EQ(schedule.due_ns(), 7'000 + 500'000'000);
}

TEST(Schedule, BurstsAreDueTogether) {
  Schedule schedule(Arrival::kBursts, 1000, 3, 1, 500);
  for (const std::int64_t due : {500, 500, 500, 1'000'500, 1'000'500, 1'000'500, 2'000'500}) {
    EXPECT_EQ(schedule.due_ns(), due);
    schedule.advance();
  }
}

TEST(Schedule, ApartCountsFromTheCompletion) {
  Schedule schedule(Arrival::kApart, 1000, 1, 1, 500);
  EXPECT_EQ(schedule.due_ns(), 500);
  schedule.advance();
  schedule.completed(3'000'000);
  EXPECT_EQ(schedule.due_ns(), 4'000'000);
}

TEST(Schedule, PoissonHasTheMeanAndTheSeedDecides) {
  Schedule a(Arrival::kPoisson, 100, 1, 1, 0);
  Schedule b(Arrival::kPoisson, 100, 1, 1, 0);
  Schedule c(Arrival::kPoisson, 100, 1, 2, 0);
  constexpr int kLaunches = 20'000;
  std::int64_t last = 0;
  double squares = 0;
  for (int i = 0; i < kLaunches; ++i) {
    a.advance();
    b.advance();
    c.advance();
    const double gap_us = static_cast<double>(a.due_ns() - last) / 1000;
    last = a.due_ns();
    squares += gap_us * gap_us;
    ASSERT_GE(gap_us, 0);
  }
  EXPECT_EQ(a.due_ns(), b.due_ns());
  EXPECT_NE(a.due_ns(), c.due_ns());
  const double mean_us = static_cast<double>(a.due_ns()) / 1000 / kLaunches;
  EXPECT_NEAR(mean_us, 100, 5);
  EXPECT_NEAR(squares / kLaunches, 2 * 100 * 100, 2000) << "an exponential distribution's second moment";
}

}  // namespace
}  // namespace gpuctl::bench
