#include "gpuctld/accounts/energy_shares.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon::energy_shares_test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

Accounts used(const std::string& slice, double sm_s, const std::string& gpu = "GPU-0") {
  return {{{slice, 0, gpu}, {.sm_s = sm_s}}};
}

TEST(EnergyShares, EachHasThePartOfItsSmSeconds) {
  EnergyShares shares;
  shares.add(used("early", 1000));  // nothing is known of that time
  EXPECT_TRUE(shares.read("GPU-0", 100, 5'000'000, kSecond).empty());
  shares.add(used("a", 250));
  shares.add(used("b", 500));
  shares.add(used("a", 250));
  shares.add(used("other", 500, "GPU-1"));
  // 3000 J in 10 s, in which all SMs have 1000 s.
  EXPECT_EQ(shares.read("GPU-0", 100, 8'000'000, 11 * kSecond),
            (Accounts{{{"a", 0, "GPU-0"}, {.joules = 1500}}, {{"b", 0, "GPU-0"}, {.joules = 1500}}}));
  EXPECT_TRUE(shares.read("GPU-0", 100, 9'000'000, 21 * kSecond).empty()) << "idle";
}

TEST(EnergyShares, WhatFallsToIdleSmsIsNobodys) {
  EnergyShares shares;
  shares.read("GPU-0", 100, 0, 0);
  shares.add(used("a", 10));
  EXPECT_EQ(shares.read("GPU-0", 100, 1'000'000, 10 * kSecond).begin()->second.joules, 10);
}

/// A program that works a tenth of the time: its part is not a tenth.
TEST(EnergyShares, WhatIsUsedAboveRestIsOfThoseWhoWorked) {
  EnergyShares shares;
  shares.read("GPU-0", 100, 0, 0);
  EXPECT_TRUE(shares.read("GPU-0", 100, 1'000'000, 10 * kSecond).empty()) << "at rest it takes 100 W";
  shares.rest();
  shares.read("GPU-0", 100, 1'500'000, 20 * kSecond);
  shares.add(used("a", 100));
  const Accounts alone = shares.read("GPU-0", 100, 7'500'000, 30 * kSecond);
  EXPECT_EQ(alone.begin()->second.joules, 100 + 5000) << "a tenth of what the GPU takes at rest, and all above that";
  shares.add(used("a", 100));
  shares.add(used("b", 300));
  const Accounts both = shares.read("GPU-0", 100, 9'500'000, 40 * kSecond);
  EXPECT_EQ(both.begin()->second.joules, 100 + 250);
  EXPECT_EQ(std::next(both.begin())->second.joules, 300 + 750);
}

TEST(EnergyShares, NobodyHasMoreThanWasUsed) {
  EnergyShares shares;
  shares.read("GPU-0", 100, 0, 0);
  shares.add(used("a", 3000));  // a burst of half a minute that ended now
  shares.add(used("b", 1000));
  const Accounts joules = shares.read("GPU-0", 100, 1'000'000, 10 * kSecond);
  EXPECT_EQ(joules.begin()->second.joules, 750);
  EXPECT_EQ(std::next(joules.begin())->second.joules, 250);
}

TEST(EnergyShares, ADriverThatCountsAnewIsANewBeginning) {
  EnergyShares shares;
  shares.read("GPU-0", 100, 5'000'000, 0);
  shares.add(used("a", 100));
  EXPECT_TRUE(shares.read("GPU-0", 100, 1'000, 10 * kSecond).empty());
  shares.add(used("a", 1000));
  EXPECT_EQ(shares.read("GPU-0", 100, 2'000, 20 * kSecond).begin()->second.joules, 1);
  shares.rest();
  EXPECT_TRUE(shares.read("GPU-0", 100, 9'000, 30 * kSecond).empty());
}

}  // namespace
}  // namespace gpuctl::daemon::energy_shares_test
