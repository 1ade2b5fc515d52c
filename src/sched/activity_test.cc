#include "sched/activity.h"

#include <gtest/gtest.h>

#include <vector>

#include "sched/policy.h"

namespace gpuctl::sched::activity_test {
namespace {

using namespace std::chrono_literals;
constexpr std::uint64_t kMs = 1'000'000;

NodeInput node(std::int32_t parent, std::chrono::nanoseconds hold) {
  return {.parent = parent, .reserve = CapSM{8}, .strict = false, .hold = hold, .policy = &policies().front()};
}

TEST(Activity, ASliceIsActiveUntilItsHoldIsOver) {
  std::vector<NodeInput> nodes{{.reserve = CapSM{132}, .policy = &policies().front()}, node(0, 100ms)};
  const std::vector<Work> work{{1, 50 * kMs}};
  Activity activity = mark_active(nodes, work, 50 * kMs);
  EXPECT_TRUE(activity.changed);
  EXPECT_TRUE(nodes[1].active);
  EXPECT_TRUE(nodes[1].keeps_reserve());
  EXPECT_EQ(activity.next_ns, 150 * kMs);
  activity = mark_active(nodes, work, 150 * kMs - 1);
  EXPECT_FALSE(activity.changed);
  EXPECT_TRUE(nodes[1].active);
  activity = mark_active(nodes, work, 150 * kMs);
  EXPECT_TRUE(activity.changed);
  EXPECT_FALSE(nodes[1].keeps_reserve());
  EXPECT_EQ(activity.next_ns, UINT64_MAX);
  EXPECT_FALSE(mark_active(nodes, work, 151 * kMs).changed);
}

TEST(Activity, TheLatestWorkOfAnyClientCounts) {
  std::vector<NodeInput> nodes{{.policy = &policies().front()}, node(0, 100ms)};
  const std::vector<Work> work{{1, 90 * kMs}, {1, 0}, {1, 40 * kMs}};
  EXPECT_EQ(mark_active(nodes, work, 100 * kMs).next_ns, 190 * kMs);
}

TEST(Activity, OneThatNeverWorkedIsNotActive) {
  std::vector<NodeInput> nodes{{.policy = &policies().front()}, node(0, 100ms)};
  EXPECT_FALSE(mark_active(nodes, std::vector<Work>{{1, 0}}, 1).changed);
  EXPECT_FALSE(mark_active(nodes, {}, 1).changed);
  EXPECT_FALSE(nodes[1].active);
}

TEST(Activity, WorkBelowCountsWithEachSlicesOwnHold) {
  std::vector<NodeInput> nodes{
      {.policy = &policies().front()}, node(0, 200ms), node(1, 10ms), node(1, 500ms), node(0, 500ms)};
  const Activity activity = mark_active(nodes, std::vector<Work>{{2, 100 * kMs}}, 150 * kMs);
  EXPECT_TRUE(nodes[1].active);
  EXPECT_FALSE(nodes[2].active);
  EXPECT_FALSE(nodes[3].active);
  EXPECT_FALSE(nodes[4].active);
  EXPECT_EQ(activity.next_ns, 300 * kMs);
}

TEST(Activity, SlicesWithoutAHoldNeverAre) {
  std::vector<NodeInput> nodes{{.policy = &policies().front()}, node(0, 0ns)};
  EXPECT_FALSE(mark_active(nodes, std::vector<Work>{{1, 5}}, 5).changed);
  EXPECT_FALSE(nodes[1].keeps_reserve());
  EXPECT_TRUE(nodes[0].keeps_reserve());  // strict
}

}  // namespace
}  // namespace gpuctl::sched::activity_test
