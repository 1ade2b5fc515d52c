#include "libgpuslice/launch/agent_stuck.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gpuslice
