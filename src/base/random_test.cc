#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace gpuctl {
namespace {

TEST(Random, IsTheSameEverywhere) {
  Random random(1234567);  // the numbers of SplitMix64's reference implementation
  EXPECT_EQ(random.bits(), 6457827717110365317u);
  EXPECT_EQ(random.bits(), 3203168211198807973u);
  EXPECT_EQ(random.bits(), 9817491932198370423u);
}

TEST(Random, NeighbouringSeedsShareNoNumber) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    for (int i = 0; i < 1000; ++i) seen.insert(random.bits());
  }
  EXPECT_EQ(seen.size(), 10'000u);
}

TEST(Random, StaysWithinItsBounds) {
  Random random(3);
  for (int i = 0; i < 10'000; ++i) {
    const double number = random.uniform();
    const float single = random.uniform_float();
    EXPECT_TRUE(number >= 0 && number < 1) << number;
    EXPECT_TRUE(single >= 0 && single < 1) << single;
    EXPECT_LT(random.below(7), 7u);
    EXPECT_GE(random.exponential(2), 0);
  }
}

}  // namespace
}  // namespace gpuctl
