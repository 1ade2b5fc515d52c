// Programs that MPS itself keeps to a number of SMs: what is in force for them and for others.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {
namespace {

struct KeptProgram : FakeProgram {
  /// `mps_sms`: 0: MPS does not keep it.
  KeptProgram(Scheduler& scheduler, const std::string& slice, std::uint32_t mps_sms)
      : FakeProgram(scheduler.add(made(slice, mps_sms), 1)) {}

  static Client made(const std::string& slice, std::uint32_t mps_sms) {
    Client client = make(slice, {0});
    client.slots()[0].mps_sms = mps_sms;
    return client;
  }
  std::string in_force() const { return client->usage(0).in_force; }
  bool free() const { return ipc::mode_of(ipc::load(stub->grant[0].flags)) == ipc::Mode::free; }
};

/// 132 SMs: "ls" with a priority, and "batch" with a max of 99.
sched::SliceTree limited_batch() {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.create("ls", {.priority = 50}, kRoot));
  EXPECT_TRUE(tree.create("batch", {.max = 99}, kRoot));
  return tree;
}

TEST(KeptByMps, NothingIsInForceForAProgramWithinItsMax) {
  Scheduler scheduler({gpu(132)}, limited_batch());
  KeptProgram ls(scheduler, "ls", 0), batch(scheduler, "batch", 98);
  EXPECT_TRUE(batch.free());
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_EQ(batch.guaranteed(), 0u) << "the driver tells it of 98";
  EXPECT_EQ(batch.client->usage(0).mps_sms, 98);
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.client->usage(0).demand, 98) << "it cannot fill more";
  EXPECT_EQ(batch.client->usage(0).granted, 98);
  EXPECT_EQ(scheduler.slice_use()[1].granted, sched::CapSM{99}) << "batch";
  KeptProgram plain(scheduler, "batch", 0);
  EXPECT_EQ(batch.in_force(), "max");
  EXPECT_EQ(plain.in_force(), "max");
  plain.demand(132);
  scheduler.update(3);
  EXPECT_EQ(batch.decided() + plain.decided(), 99u);
}

TEST(KeptByMps, ProgramsThatShareAMaxKeepItTogether) {
  Scheduler scheduler({gpu(132)}, limited_batch());
  KeptProgram first(scheduler, "batch", 50), second(scheduler, "batch", 48);
  EXPECT_TRUE(first.free() && second.free());
  KeptProgram third(scheduler, "batch", 2);
  EXPECT_EQ(first.in_force(), "max");
  scheduler.remove(*third.client, 2);
  EXPECT_TRUE(first.free() && second.free());
}

TEST(KeptByMps, AMaxThatBecomesLessIsInForce) {
  sched::SliceTree tree = limited_batch();
  Scheduler scheduler({gpu(132)}, tree);
  KeptProgram batch(scheduler, "batch", 98);
  ASSERT_TRUE(tree.change("batch", {.max = 40}, kRoot));
  scheduler.set_tree(tree, 2);
  EXPECT_EQ(batch.in_force(), "max");
  EXPECT_EQ(batch.granted(), 40u);
  ASSERT_TRUE(tree.change("batch", {.max = 120}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_TRUE(batch.free());
  EXPECT_EQ(batch.client->usage(0).mps_sms, 98) << "until it starts again";
}

TEST(KeptByMps, AReserveBesideWhichItFitsIsNotInForce) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("ls", {.reserve = 34}, kRoot));
  ASSERT_TRUE(tree.create("batch", {}, kRoot));
  for (const char* mode : {"strict", "active"}) {
    ASSERT_TRUE(tree.change("ls", {.reserve_mode = mode}, kRoot));
    Scheduler scheduler({gpu(132)}, tree);
    KeptProgram ls(scheduler, "ls", 0), batch(scheduler, "batch", 98);
    EXPECT_TRUE(batch.free()) << mode;
    KeptProgram more(scheduler, "batch", 2);
    EXPECT_EQ(batch.in_force(), "reserve") << mode;
  }
}

TEST(KeptByMps, WithoutMpsItMeansNothing) {
  Gpu hardware = gpu(132);
  hardware.software = false;
  Scheduler scheduler({hardware}, limited_batch());
  KeptProgram batch(scheduler, "batch", 98);
  EXPECT_TRUE(batch.free());
  scheduler.set_time_sliced(true, 2);
  EXPECT_EQ(batch.in_force(), "max");
}

using Hundredths = std::optional<std::uint32_t>;

/// limited_batch(), and "batch" has a reserve.
sched::SliceTree reserved_batch() {
  sched::SliceTree tree = limited_batch();
  EXPECT_TRUE(tree.change("batch", {.reserve = 8}, kRoot));
  return tree;
}

TEST(KeptByMps, ThePercentageIsThatOfWhatASliceWithAReserveMayEverHave) {
  sched::SliceTree tree = reserved_batch();
  ASSERT_TRUE(tree.create("batch/below", {.max = 40}, kRoot));
  ASSERT_TRUE(tree.create("limited", {.max = 40}, kRoot));
  ASSERT_TRUE(tree.create("jobs", {.reserve = 8, .max = 40, .policy = "fcfs"}, kRoot));
  const Scheduler scheduler({gpu(132)}, tree);
  const auto of = [&](const std::string& path) {
    return scheduler.mps_hundredths(
        static_cast<std::size_t>(std::distance(tree.slices().begin(), tree.slices().find(path))));
  };
  EXPECT_EQ(of("/"), Hundredths());
  EXPECT_EQ(of("ls"), Hundredths());
  EXPECT_EQ(of("batch"), Hundredths(7462));
  EXPECT_EQ(of("batch/below"), Hundredths(3068));
  EXPECT_EQ(of("limited"), Hundredths()) << "gpuctl keeps the max";
  EXPECT_EQ(of("jobs"), Hundredths()) << "durations are those on the whole GPU";
}

TEST(KeptByMps, AStrictReserveIsLeftFreeByWhatAlsoHasAMax) {
  sched::SliceTree tree = reserved_batch();
  ASSERT_TRUE(tree.change("ls", {.reserve = 40, .reserve_mode = "strict"}, kRoot));
  ASSERT_TRUE(tree.create("other", {}, kRoot));
  const Scheduler scheduler({gpu(132)}, tree);
  const std::size_t batch = 1, other = 3;
  EXPECT_EQ(scheduler.mps_hundredths(batch), sched::hundredths_for(sched::CapSM{92}, sched::CapSM{132}));
  EXPECT_EQ(scheduler.mps_hundredths(other), Hundredths()) << "two such programs would leave nothing free";
}

TEST(KeptByMps, ASliceWithAReserveIsKeptOffThatOfAnother) {
  sched::SliceTree tree = limited_batch();
  ASSERT_TRUE(tree.create("other", {}, kRoot));
  for (const char* path : {"ls", "other"})
    ASSERT_TRUE(tree.change(path, {.reserve = 14, .reserve_mode = "strict"}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  const std::size_t batch = 1, ls = 2;
  EXPECT_EQ(scheduler.mps_hundredths(ls), sched::hundredths_for(sched::CapSM{118}, sched::CapSM{132}));
  EXPECT_EQ(scheduler.mps_hundredths(batch), Hundredths()) << "it has a max, and no reserve";
  const KeptProgram one(scheduler, "ls", 118), two(scheduler, "other", 118);
  EXPECT_TRUE(one.free());
  EXPECT_TRUE(two.free());
}

TEST(KeptByMps, TheGreatestPercentageThatAnyDeviceNeeds) {
  sched::SliceTree tree = reserved_batch();
  ASSERT_TRUE(tree.change("batch", {.max = 50}, kRoot));
  const std::size_t batch = 1;
  EXPECT_EQ(Scheduler({gpu(132), gpu(100, 1)}, tree).mps_hundredths(batch), Hundredths(5050));
  EXPECT_EQ(Scheduler({gpu(132), gpu(40, 1)}, tree).mps_hundredths(batch), Hundredths()) << "one needs none";
  ASSERT_TRUE(tree.change("batch", {.reserve = 0, .max = 0}, kRoot));
  EXPECT_EQ(Scheduler({gpu(132)}, tree).mps_hundredths(batch), Hundredths()) << "it does not stay suspended";
}

}  // namespace
}  // namespace gpuctl::daemon
