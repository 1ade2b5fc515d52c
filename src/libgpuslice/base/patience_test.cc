#include "libgpuslice/base/patience.h"

#include <gtest/gtest.h>

namespace gpuslice::patience_test {

using namespace std::chrono_literals;

constexpr Patience::Clock::time_point kBegin{1h};

const auto kNobodyWaits = [] { return false; };
const auto kSomeoneWaits = [] { return true; };
const auto kNobodyAsks = [] {
  ADD_FAILURE() << "nobody needs to know";
  return true;
};

TEST(Patience, IsLongWhileSomethingRuns) {
  Patience patience(kBegin);
  EXPECT_FALSE(patience.is_over(1, true, kNobodyAsks, kBegin));
  EXPECT_FALSE(patience.is_over(1, true, kNobodyAsks, kBegin + Patience::kWhileItRuns - 1ns));
  EXPECT_TRUE(patience.is_over(1, true, kNobodyAsks, kBegin + Patience::kWhileItRuns));
}

TEST(Patience, IsShortWhereAStreamMayWait) {
  Patience patience(kBegin);
  EXPECT_FALSE(patience.is_over(1, false, kNobodyAsks, kBegin + Patience::kWhileItMayWait - 1ns));
  Patience other(kBegin);
  EXPECT_FALSE(other.is_over(1, false, kNobodyAsks, kBegin));
  EXPECT_FALSE(other.is_over(1, false, kNobodyWaits, kBegin + Patience::kWhileItMayWait));
  EXPECT_TRUE(other.is_over(1, false, kSomeoneWaits, kBegin + Patience::kWhileItMayWait));
}

TEST(Patience, IsRenewedByProgress) {
  Patience patience(kBegin);
  EXPECT_FALSE(patience.is_over(1, false, kSomeoneWaits, kBegin));
  EXPECT_FALSE(patience.is_over(2, false, kSomeoneWaits, kBegin + Patience::kWhileItMayWait));
  EXPECT_TRUE(patience.is_over(2, false, kSomeoneWaits, kBegin + 2 * Patience::kWhileItMayWait));
  EXPECT_FALSE(patience.is_over(3, true, kSomeoneWaits, kBegin + Patience::kWhileItRuns));
  EXPECT_FALSE(patience.is_over(3, true, kSomeoneWaits, kBegin + 2 * Patience::kWhileItRuns - 1ns));
}

TEST(Patience, IsAsLongAsItsLimits) {
  constexpr Patience::Limits kLimits{.while_it_runs = 3s, .while_it_may_wait = 1s};
  Patience patience(kLimits, kBegin);
  EXPECT_FALSE(patience.is_over(1, true, kNobodyAsks, kBegin));
  EXPECT_FALSE(patience.is_over(1, false, kNobodyAsks, kBegin + 1s - 1ns));
  EXPECT_FALSE(patience.is_over(1, false, kNobodyWaits, kBegin + 3s - 1ns));
  EXPECT_TRUE(patience.is_over(1, false, kSomeoneWaits, kBegin + 1s));
  EXPECT_TRUE(patience.is_over(1, true, kNobodyAsks, kBegin + 3s));
}

}  // namespace gpuslice::patience_test
