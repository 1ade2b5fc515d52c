#include "gpuctld/clients/lease.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

using namespace std::chrono_literals;
constexpr std::uint64_t kMs = 1'000'000, kSecond = 1000 * kMs;

TEST(Lease, ExpiresWithoutABeat) {
  Lease lease;
  for (std::uint64_t now = 0; now <= 2000; now += 100) lease.look(7, now * kMs);
  EXPECT_TRUE(lease.expired(2s));
  EXPECT_FALSE(lease.expired(2001ms));
  EXPECT_TRUE(lease.look(8, 2100 * kMs)) << "it was held up";
  EXPECT_FALSE(lease.expired(2s));
  EXPECT_FALSE(lease.look(9, 2200 * kMs)) << "it goes on";
}

TEST(Lease, AnyOtherNumberIsABeat) {
  Lease lease;
  for (std::uint64_t i = 0; i < 100; ++i) lease.look(0xfffffff0u + static_cast<std::uint32_t>(i), i * 300 * kMs);
  EXPECT_FALSE(lease.expired(300ms));
}

TEST(Lease, AClientThatNeverBeatIsNotExpectedTo) {
  Lease lease;
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_FALSE(lease.look(0, i * 300 * kMs));
  EXPECT_FALSE(lease.expired(1ms));
  EXPECT_EQ(lease.alive_ns(5 * kSecond), 5 * kSecond);
}

TEST(Lease, ADaemonThatDidNotLookTakesNobodyForDead) {
  Lease lease;
  lease.look(1, kSecond);
  lease.look(1, 100 * kSecond);
  EXPECT_FALSE(lease.expired(2s));
  EXPECT_EQ(lease.alive_ns(100 * kSecond), kSecond);
}

}  // namespace
}  // namespace gpuctl::daemon
