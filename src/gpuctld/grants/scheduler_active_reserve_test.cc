// Reserves in mode `active`: kept while their slice has work and for a while after, lent otherwise.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {
namespace {

/// `ls` has the default mode: its reserve is kept for 100 ms after its latest work. A batch client is busy.
class ActiveReserve : public testing::Test {
 protected:
  static constexpr std::uint64_t kMs = 1'000'000;
  ActiveReserve() {
    batch.demand(132);
    update(1);
    EXPECT_EQ(batch.granted(), 132u);  // nothing has begun in ls
    EXPECT_EQ(ls.granted(), 0u);
    EXPECT_EQ(scheduler.again_ns(), UINT64_MAX);
  }
  void update(std::uint64_t ms) {
    scheduler.update(ms * kMs);
    batch.apply();
    ls.apply();
    scheduler.update(ms * kMs);
  }
  Scheduler scheduler{{gpu(132)}, ls_and_batch(sched::ReserveMode::active)};
  FakeProgram batch{scheduler, "batch"}, ls{scheduler, "ls"};
};

TEST_F(ActiveReserve, IsKeptBetweenLaunchesAndLentAfterTheHold) {
  ls.demand(2);
  update(10);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_EQ(scheduler.again_ns(), 110 * kMs);
  ls.demand(0);
  update(20);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(ls.granted(), 8u);
  update(109);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(scheduler.again_ns(), 110 * kMs);
  update(110);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_EQ(ls.granted(), 0u);
  EXPECT_EQ(scheduler.again_ns(), UINT64_MAX);
  ls.demand(2);
  update(500);
  EXPECT_EQ(batch.granted(), 124u);
}

TEST_F(ActiveReserve, WorkThatIsOutstandingKeepsIt) {
  ls.demand(1);
  update(10);
  update(1000);
  EXPECT_EQ(batch.granted(), 124u);
  ls.demand(0);
  ipc::store(ls.stub->usage[0].outstanding, 1u);
  update(2000);
  EXPECT_EQ(batch.granted(), 124u);
}

TEST_F(ActiveReserve, LaunchesThatNobodySawRunCountToo) {
  for (std::uint64_t ms = 100; ms < 1000; ms += 90) {
    ls.launch();
    update(ms);
    EXPECT_EQ(batch.granted(), 124u) << ms;
    EXPECT_EQ(ipc::load(ls.stub->grant[0].reserve), 8u);
  }
  update(2000);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_EQ(ipc::load(ls.stub->grant[0].reserve), 0u);
}

TEST_F(ActiveReserve, LaunchesOfOthersDoNotCount) {
  batch.launch();
  update(10);
  EXPECT_EQ(batch.granted(), 132u);
}

TEST_F(ActiveReserve, TheHoldIsTheSlicesOwn) {
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("ls", {.reserve_hold_ms = 1000}, kRoot));
  scheduler.set_tree(tree, 2 * kMs);
  ls.launch();
  update(10);
  update(1009);
  EXPECT_EQ(batch.granted(), 124u);
  update(1010);
  EXPECT_EQ(batch.granted(), 132u);
}

TEST_F(ActiveReserve, AnotherModeIsInForceAtOnce) {
  const auto set = [&](const char* mode, std::uint64_t ms) {
    sched::SliceTree tree = scheduler.tree();
    ASSERT_TRUE(tree.change("ls", {.reserve_mode = mode}, kRoot));
    scheduler.set_tree(tree, ms * kMs);
    update(ms);
  };
  set("strict", 2);
  EXPECT_EQ(batch.granted(), 124u);
  set("lend", 3);
  EXPECT_EQ(batch.granted(), 132u);
  ls.launch();
  update(4);
  EXPECT_EQ(batch.granted(), 132u);
  set("active", 5);
  EXPECT_EQ(batch.granted(), 124u);
}

TEST_F(ActiveReserve, GoesWithItsLastClient) {
  ls.launch();
  update(10);
  EXPECT_EQ(batch.granted(), 124u);
  scheduler.remove(*ls.client, 11 * kMs);
  EXPECT_EQ(batch.granted(), 132u);
}

TEST(ActiveReserves, AReserveIsKeptOnTheGpuWhereItsSliceIsActive) {
  Scheduler scheduler({gpu(132), gpu(100, 1)}, ls_and_batch(sched::ReserveMode::active));
  FakeProgram batch(scheduler, "batch", {0, 1}), ls(scheduler, "ls", {0, 1});
  batch.demand(132, 0);
  batch.demand(100, 1);
  ls.launch(1, 1);
  scheduler.update(5);
  EXPECT_EQ(batch.granted(0), 132u);
  EXPECT_EQ(batch.granted(1), 92u);
}

}  // namespace
}  // namespace gpuctl::daemon
