#include "libgpuslice/launch/agent_stuck.h"

#include <gtest/gtest.h>

#include "libgpuslice/launch/held_up.h"

namespace gpuslice {

namespace {

TEST(AgentStuck, InTheSameDriverCallAtBothLooks) {
  DriverCalls calls;
  const auto look = [&] { return AgentLook{calls.count(), true}; };
  AgentLook before = look();
  EXPECT_FALSE(is_stuck(before, look()));  // asleep, or without a processor
  {
    const DriverCalls::Inside call(calls);
    EXPECT_FALSE(is_stuck(before, look()));
    before = look();
    EXPECT_TRUE(is_stuck(before, look()));
    EXPECT_FALSE(is_stuck(before, {calls.count(), false}));
    EXPECT_FALSE(is_stuck({calls.count(), false}, look()));
  }
  EXPECT_FALSE(is_stuck(before, look()));
  const DriverCalls::Inside another(calls);
  EXPECT_FALSE(is_stuck(before, look()));
}

TEST(HeldUp, WhenNoStreamIsFoundForLong) {
  constexpr std::uint64_t kNow = 5'000'000'000, kLasts = HeldUp::kLastsNs;
  HeldUp held;
  EXPECT_FALSE(held.tried(false, kNow));
  EXPECT_FALSE(held.tried(false, kNow + kLasts - 1));
  EXPECT_FALSE(held.tried(true, kNow + kLasts));
  EXPECT_FALSE(held.tried(false, kNow + kLasts + 1));
  EXPECT_FALSE(held.tried(false, kNow + 2 * kLasts));
  EXPECT_TRUE(held.tried(false, kNow + 2 * kLasts + 1));
  EXPECT_TRUE(held.tried(false, kNow + 3 * kLasts));
  EXPECT_FALSE(held.tried(true, kNow + 3 * kLasts));
}

}  // namespace
}  // namespace gpuslice
