// For which part of the time programs waited for SMs.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon::pressure_test {
namespace {

constexpr std::uint64_t kStep = 1'000'000;  // a millisecond: who is silent for long has no demand

/// How many milliseconds work in the slice waited: some, full.
std::pair<double, double> waited(const Scheduler& scheduler, const std::string& path, std::uint64_t now_ns) {
  const auto& slices = scheduler.tree().slices();
  const auto index = static_cast<std::size_t>(std::distance(slices.begin(), slices.find(path)));
  const auto seen = scheduler.pressure()[index].at(std::chrono::nanoseconds(now_ns));
  using Steps = std::chrono::duration<double, std::milli>;
  return {Steps(seen.some.total).count(), Steps(seen.full.total).count()};
}

TEST(PressureInScheduler, WhoWantsMoreThanItHasWaitsAndWhoHasNothingStalls) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("team", {}, kRoot));
  ASSERT_TRUE(tree.create("team/none", {.max = 0}, kRoot));
  ASSERT_TRUE(tree.create("team/few", {.max = 8}, kRoot));
  ASSERT_TRUE(tree.create("beside", {}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram none(scheduler, "team/none"), few(scheduler, "team/few"), beside(scheduler, "beside");
  scheduler.update(1 * kStep);
  none.demand(4);
  scheduler.update(2 * kStep);
  EXPECT_EQ(waited(scheduler, "team/none", 3 * kStep), std::pair(1.0, 1.0));
  EXPECT_EQ(waited(scheduler, "team", 3 * kStep), std::pair(1.0, 1.0)) << "nobody else there has work";
  few.demand(8);
  scheduler.update(3 * kStep);
  EXPECT_EQ(waited(scheduler, "team", 5 * kStep), std::pair(3.0, 1.0)) << "one waits, and one runs";
  EXPECT_EQ(waited(scheduler, "team/few", 5 * kStep), std::pair(0.0, 0.0)) << "it has what it wants";
  few.demand(9);
  scheduler.update(5 * kStep);
  none.demand(0);
  scheduler.update(6 * kStep);
  EXPECT_EQ(waited(scheduler, "team/none", 9 * kStep), std::pair(4.0, 4.0)) << "its work is gone";
  EXPECT_EQ(waited(scheduler, "team/few", 9 * kStep), std::pair(4.0, 0.0)) << "it has 8 of 9";
  EXPECT_EQ(waited(scheduler, "beside", 9 * kStep), std::pair(0.0, 0.0));
  EXPECT_EQ(waited(scheduler, "/", 9 * kStep).first, 7.0);
}

TEST(PressureInScheduler, StaysWithItsSliceWhenOthersComeAndGoAndEndsWithTheProgram) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("m", {.max = 0}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram program(scheduler, "m");
  program.demand(1);
  scheduler.update(1 * kStep);
  ASSERT_TRUE(tree.create("a", {}, kRoot));
  scheduler.set_tree(tree, 3 * kStep);
  EXPECT_EQ(waited(scheduler, "m", 3 * kStep).second, 2.0);
  EXPECT_EQ(waited(scheduler, "a", 3 * kStep).second, 0.0);
  ASSERT_TRUE(tree.remove("a", 0, kRoot));
  ASSERT_TRUE(tree.create("z", {}, kRoot));
  scheduler.set_tree(tree, 3 * kStep);
  EXPECT_EQ(waited(scheduler, "m", 3 * kStep).second, 2.0);
  EXPECT_EQ(waited(scheduler, "z", 3 * kStep).second, 0.0);
  scheduler.remove(*program.client, 4 * kStep);
  EXPECT_EQ(waited(scheduler, "m", 9 * kStep).second, 3.0);
}

}  // namespace
}  // namespace gpuctl::daemon::pressure_test
