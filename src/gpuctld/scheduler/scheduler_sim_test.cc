// The policy `sim` in the daemon: jobs side by side, and what their launches teach of their kernels.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon {
namespace {

TEST(SimInScheduler, JobsRunSideBySideAndWhoIsAloneHasAll) {
  Scheduler scheduler({gpu(132)}, tree_with("sim"));
  FakeJob a(scheduler, "low"), b(scheduler, "high");
  a.head(1, 1320);
  scheduler.update(1 * kMs);
  EXPECT_EQ(a.granted(), 132u);
  a.apply();
  b.head(1, 1320);
  scheduler.update(1 * kMs + 1000);
  EXPECT_EQ(a.granted(), 66u) << "nothing is known of either: both scale";
  EXPECT_EQ(b.granted(), 0u) << "nobody said yet that the SMs are left";
  settle(scheduler, {&a, &b}, 1 * kMs + 2000);
  EXPECT_EQ(b.granted(), 66u);
  EXPECT_EQ(a.state(), "running");
  EXPECT_EQ(b.state(), "running");
  b.head(0);
  scheduler.update(2 * kMs);
  EXPECT_EQ(a.granted(), 132u);
  EXPECT_EQ(b.granted(), 0u);
}

TEST(SimInScheduler, LearnsWhatAKernelCanUseAndGivesTheRestToOthers) {
  Scheduler scheduler({gpu(132)}, tree_with("sim:refine_ms=0:floor=0"));
  FakeJob flat(scheduler, "low"), other(scheduler, "high");
  other.kernel = 8;
  flat.head(1, 1320);
  settle(scheduler, {&flat}, 1 * kMs);
  ended(flat, 1, 1320, 1 * kMs + 1000, 11 * kMs);  // with 132 SMs
  flat.head(0);
  scheduler.update(11 * kMs);
  other.head(1, 13200);  // 100 ms with all SMs, against 10
  settle(scheduler, {&flat, &other}, 12 * kMs);
  flat.head(2, 1320);
  settle(scheduler, {&flat, &other}, 12 * kMs + 1000);
  const std::uint32_t before = flat.granted();
  EXPECT_GE(before, 10u);
  EXPECT_LE(before, 14u);
  ended(flat, 2, 1320, 12 * kMs + 2000, 22 * kMs);  // with a tenth of them, no slower
  flat.head(3, 1320);
  settle(scheduler, {&flat, &other}, 22 * kMs);
  EXPECT_LT(flat.granted(), before);
  EXPECT_EQ(flat.granted() + other.granted(), 132u);
  ASSERT_EQ(scheduler.knowledge().list().size(), 1u);
  ASSERT_EQ(scheduler.knowledge().list()[0].curve.size(), 1u) << "132 are of no more use";
  EXPECT_EQ(scheduler.knowledge().list()[0].curve[0].sms, before);
}

TEST(SimInScheduler, NoSmIsIdleThatSomebodyMightUse) {
  Scheduler scheduler({gpu(132)}, tree_with("sim:refine_ms=0:floor=0"));
  FakeJob a(scheduler, "low"), b(scheduler, "high");
  a.head(1, 1320);
  settle(scheduler, {&a}, 1 * kMs);
  ended(a, 1, 1320, 1 * kMs + 1000, 11 * kMs);
  b.kernel = 8;
  b.head(1, 13200);
  a.head(2, 1320);
  settle(scheduler, {&a, &b}, 11 * kMs + 1000);
  ended(a, 2, 1320, 11 * kMs + 2000, 21 * kMs);  // as with 132
  ASSERT_LT(a.granted(), 20u);
  a.head(3, 1320);
  b.kernel = 7;
  b.head(2, 1320);  // of the same kernel
  settle(scheduler, {&a, &b}, 21 * kMs);
  const std::uint32_t of_use = static_cast<std::uint32_t>(scheduler.knowledge().list()[0].curve.back().sms);
  ASSERT_LT(of_use, 20u);
  EXPECT_EQ(a.granted() + b.granted(), 132u);
}

TEST(SimInScheduler, ALaunchBesideAnotherOfItsClientIsNoPointOfACurve) {
  Scheduler scheduler({gpu(132)}, tree_with("sim"));
  FakeJob a(scheduler, "low");
  a.head(5, 1320);
  settle(scheduler, {&a}, 1 * kMs);
  ended(a, 6, 1320, 1 * kMs + 1000, 11 * kMs);  // launch 5 still runs
  scheduler.update(12 * kMs);
  EXPECT_TRUE(scheduler.knowledge().list().empty() || scheduler.knowledge().list()[0].curve.empty());
  ended(a, 5, 1320, 1 * kMs + 1000, 12 * kMs);  // and ended 1 ms after
  a.head(0);
  scheduler.update(13 * kMs);
  EXPECT_TRUE(scheduler.knowledge().list().empty() || scheduler.knowledge().list()[0].curve.empty());
  ended(a, 7, 1320, 13 * kMs, 23 * kMs);
  scheduler.update(24 * kMs);
  ASSERT_EQ(scheduler.knowledge().list().size(), 1u);
  EXPECT_EQ(scheduler.knowledge().list()[0].curve.size(), 1u);
}

TEST(SimInScheduler, WhenAllIsClaimedTheRestIsForOthers) {
  Scheduler scheduler({gpu(132)}, tree_with("sim"));
  FakeJob a(scheduler, "low"), b(scheduler, "high");
  a.head(1, 1320);
  b.head(1, 1320);
  settle(scheduler, {&a, &b}, 1 * kMs);
  EXPECT_EQ(a.granted(), 66u);
  EXPECT_EQ(b.granted(), 66u);
  ipc::store(b.stub->usage[0].outstanding, 2u);
  b.stub->head[0].claimed = 1320;
  settle(scheduler, {&a, &b}, 2 * kMs);
  EXPECT_GT(b.granted(), 0u) << "another launch of b waits behind this one";
  ipc::store(b.stub->usage[0].outstanding, 1u);
  b.head(2, 1320);
  settle(scheduler, {&a, &b}, 3 * kMs);
  const std::uint32_t held = b.granted();
  EXPECT_GT(held, 0u);
  b.stub->head[0].claimed = 1320;
  settle(scheduler, {&a, &b}, 4 * kMs);
  EXPECT_EQ(b.granted(), 0u);
  EXPECT_EQ(a.granted(), 132u);
  // What is taken away then is not what it ran with.
  ended(b, 2, 1320, 3 * kMs + 1000, 9 * kMs);
  b.head(0);
  scheduler.update(10 * kMs);
  ASSERT_EQ(scheduler.knowledge().list().size(), 1u);
  ASSERT_EQ(scheduler.knowledge().list()[0].curve.size(), 1u);
  EXPECT_EQ(scheduler.knowledge().list()[0].curve[0].sms, held);
  EXPECT_NEAR(scheduler.knowledge().list()[0].curve[0].block_task_us, 5999.0 / 1320, 0.1);
}

TEST(SimInScheduler, ALaunchThatDoesNotGetOnIsNotTakenForOneThatIsNearlyOver) {
  Scheduler scheduler({gpu(132)}, tree_with("sim:refine_ms=5"));
  FakeJob stuck(scheduler, "low"), other(scheduler, "high");
  stuck.head(1, 1320);  // 10 ms each, and nothing is claimed for a long time
  std::uint64_t launch = 0, sum = 0;
  for (std::uint64_t ms = 1; ms < 1000; ms += 5) {
    other.head(++launch, 1320);
    settle(scheduler, {&stuck, &other}, ms * kMs);
    sum += ms < 500 ? 0 : stuck.granted();
  }
  EXPECT_GE(sum / 100, 30u) << "5 ms in the mean beside 10 ms";
  stuck.stub->head[0].claimed = 1320;  // now it is
  ipc::store(stuck.stub->usage[0].outstanding, 2u);
  other.head(++launch, 1320);
  settle(scheduler, {&stuck, &other}, 1000 * kMs);
  EXPECT_LT(stuck.granted(), 20u);
}

TEST(SimInScheduler, AnOpaqueKernelIsOneUnitThatGoesOnAsLongAsItHasGoneOn) {
  Scheduler scheduler({gpu(132)}, tree_with("sim:refine_ms=5:floor=0"));
  FakeJob opaque(scheduler, "low"), other(scheduler, "high");
  opaque.demand(132);
  other.head(1, 13200);  // 100 ms
  scheduler.update(1 * kMs);
  const std::uint32_t first = opaque.granted();
  EXPECT_LT(first, 10u) << "1 ms is what is assumed at first";
  for (std::uint64_t ms = 2; ms < 1000; ms += 5) {
    opaque.apply();
    other.apply();
    scheduler.update(ms * kMs);
  }
  EXPECT_GT(opaque.granted(), first);
  EXPECT_GT(other.granted(), 0u);
  EXPECT_LE(opaque.granted() + other.granted(), 132u);
}

}  // namespace
}  // namespace gpuctl::daemon
