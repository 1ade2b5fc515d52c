#include <gtest/gtest.h>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

/// A slice "a" with a limit of 100 MiB, and "a/b" below it with one of 80.
sched::SliceTree limited() {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.create("a", {.memory_max = 100 * kMiB}, kRoot));
  EXPECT_TRUE(tree.create("a/b", {.memory_max = 80 * kMiB}, kRoot));
  EXPECT_TRUE(tree.create("free", {}, kRoot));
  return tree;
}

class SchedulerMemory : public testing::Test {
 protected:
  bool hold(FakeProgram& program, std::uint64_t mib, std::size_t slot = 0) {
    const auto answer = scheduler.hold_memory(*program.client, slot, mib * kMiB, 1);
    if (answer.granted) ipc::store(program.stub->usage[slot].memory, mib * kMiB);
    return answer.granted;
  }
  std::uint64_t left(FakeProgram& program, std::uint64_t mib) {
    return scheduler.hold_memory(*program.client, 0, mib * kMiB, 1).free.value_or(0) / kMiB;
  }

  Scheduler scheduler{{gpu(132, 0), gpu(132, 1)}, limited()};
};

TEST_F(SchedulerMemory, ProgramsOfASliceShareItsLimit) {
  FakeProgram one(scheduler, "a"), two(scheduler, "a");
  EXPECT_TRUE(hold(one, 60));
  EXPECT_FALSE(hold(two, 41));
  EXPECT_TRUE(hold(two, 40));
  EXPECT_FALSE(hold(one, 61));
  EXPECT_EQ(left(one, 60), 0u);
  EXPECT_TRUE(hold(two, 10));
  EXPECT_EQ(left(one, 60), 30u);
  EXPECT_TRUE(hold(one, 90));
}

TEST_F(SchedulerMemory, WhatWasGrantedCountsBeforeItIsHeld) {
  FakeProgram one(scheduler, "a"), two(scheduler, "a");
  EXPECT_TRUE(scheduler.hold_memory(*one.client, 0, 60 * kMiB, 1).granted);
  EXPECT_FALSE(hold(two, 60));
  EXPECT_TRUE(hold(one, 0));  // its allocation failed
  EXPECT_TRUE(hold(two, 60));
}

TEST_F(SchedulerMemory, ALimitIsForAllBelow) {
  FakeProgram above(scheduler, "a"), below(scheduler, "a/b"), beside(scheduler, "free");
  EXPECT_EQ(ipc::load(above.stub->grant[0].memory_max), 100 * kMiB);
  EXPECT_EQ(ipc::load(below.stub->grant[0].memory_max), 80 * kMiB);
  EXPECT_TRUE(below.memory_limited());
  EXPECT_FALSE(below.alone());
  EXPECT_FALSE(beside.memory_limited());
  EXPECT_FALSE(hold(below, 81));
  EXPECT_TRUE(hold(above, 50));
  EXPECT_FALSE(hold(below, 51));
  EXPECT_TRUE(hold(below, 50));
  const auto answer = scheduler.hold_memory(*beside.client, 0, 1000 * kMiB, 1);
  EXPECT_TRUE(answer.granted);
  EXPECT_FALSE(answer.total || answer.free);
}

struct Swapped : SchedulerMemory {
  void freeze(const char* value) {
    sched::SliceTree tree = scheduler.tree();
    EXPECT_TRUE(tree.change("a/b", {.frozen = value}, kRoot));
    scheduler.set_tree(tree, 1);
  }
  void says(FakeProgram& program, const ipc::Swap& swap) {
    ipc::store(program.stub->swap, ipc::pack_swap(swap));
    scheduler.update(2);
  }
  /// What is told a second later, or as soon as `later_ns`.
  std::string news(std::uint64_t later_ns = 1'000'000'000) {
    std::string all;
    for (const auto& [client, one] : scheduler.swap_news(now_ns += later_ns))
      all += std::string(one.event) + ": " + one.text + "\n";
    return all;
  }

  std::uint64_t now_ns = 0;
};

TEST_F(Swapped, WhatIsOnTheHostIsForOthersUntilItFitsAgain) {
  FakeProgram below(scheduler, "a/b"), above(scheduler, "a");
  EXPECT_TRUE(hold(below, 80));
  EXPECT_FALSE(hold(above, 80));
  freeze("swapped");
  EXPECT_EQ(ipc::load(below.stub->swap_wanted), 1u);
  EXPECT_EQ(ipc::load(above.stub->swap_wanted), 0u);
  EXPECT_FALSE(hold(above, 80)) << "it has not left yet";
  says(below, {ipc::MemoryIs::on_host});
  EXPECT_EQ(news(), "swapped: 80M of its memory are on the host\n");
  const ipc::ClientUsage usage = below.client->usage(0);
  EXPECT_EQ(usage.memory, 0);
  EXPECT_EQ(usage.swapped, static_cast<std::int64_t>(80 * kMiB));
  EXPECT_EQ(below.client->describe().state, "swapped");
  EXPECT_TRUE(hold(above, 80));

  freeze("no");
  EXPECT_EQ(ipc::load(below.stub->swap_wanted), 1u) << "there is no room";
  EXPECT_TRUE(news().starts_with("not-restored: 80M of its memory are on the host, and wait for room"));
  EXPECT_TRUE(hold(above, 20));
  scheduler.swap_clients(3);
  EXPECT_EQ(ipc::load(below.stub->swap_wanted), 0u);
  EXPECT_FALSE(hold(above, 21)) << "it is promised to who comes back";
  below.demand(5);
  says(below, {ipc::MemoryIs::returning});
  EXPECT_EQ(below.client->usage(0).demand, 0) << "its calls wait";
  says(below, {});
  EXPECT_EQ(news(), "restored: \n");
  EXPECT_EQ(below.client->usage(0).demand, 5);
  EXPECT_FALSE(below.client->usage(0).swapped);
}

TEST_F(Swapped, WhoCannotSaysWhyAndCountsAsBefore) {
  FakeProgram below(scheduler, "a/b"), above(scheduler, "a");
  EXPECT_TRUE(hold(below, 80));
  freeze("swapped");
  says(below, {ipc::MemoryIs::on_gpu, ipc::NotSwapped::refused, 801});
  EXPECT_EQ(news(), "not-swapped: its memory stays on the GPU: the driver refuses it (error 801)\n");
  EXPECT_EQ(news(), "");
  EXPECT_FALSE(hold(above, 80));
  ipc::store(below.stub->swap, 0xffffffffu);  // whatever a page says
  scheduler.update(3);
  EXPECT_EQ(below.client->swap(), ipc::Swap{});
  says(below, {ipc::MemoryIs::lost, ipc::NotSwapped::refused, 719});
  EXPECT_EQ(news(),
            "not-restored: the driver has lost its memory: the driver refuses it (error 719); it must start again\n");
}

TEST_F(Swapped, WhoTriesInVainAgainAndAgainIsToldOfOnce) {
  FakeProgram below(scheduler, "a/b");
  freeze("swapped");
  const ipc::Swap works{ipc::MemoryIs::on_gpu, ipc::NotSwapped::works};
  says(below, works);
  EXPECT_EQ(news(), "not-swapped: its memory stays on the GPU: work of it waits on the GPU\n");
  says(below, {ipc::MemoryIs::leaving});
  EXPECT_EQ(news(), "");
  says(below, works);
  EXPECT_EQ(news(), "");
  says(below, {ipc::MemoryIs::on_host});
  EXPECT_TRUE(news().starts_with("swapped: "));
}

TEST_F(Swapped, WhoSaysAnotherThingAtEachLookIsToldOfOnceASecond) {
  FakeProgram below(scheduler, "a/b");
  freeze("swapped");
  const ipc::Swap on_host{ipc::MemoryIs::on_host};
  says(below, on_host);
  EXPECT_TRUE(news().starts_with("swapped: "));
  for (int look = 0; look < 9; ++look) {
    says(below, look % 2 == 0 ? ipc::Swap{} : on_host);
    EXPECT_EQ(news(100'000'000), "");
  }
  EXPECT_EQ(news(100'000'000), "restored: \n") << "what is so then is told, and nothing of what was between";
}

TEST_F(Swapped, WhoLeavesCountsForItsSmsUntilItHasLeft) {
  scheduler.set_options({.always_preemptible = true}, 1);
  FakeProgram below(scheduler, "a/b");
  const Client::Slot& slot = below.client->slots()[0];
  below.demand(100);
  scheduler.update(1);
  EXPECT_GE(below.granted(), 100u);
  freeze("swapped");
  EXPECT_EQ(below.granted(), 0u);
  says(below, {ipc::MemoryIs::leaving});
  EXPECT_EQ(slot.demand, 100u);
  EXPECT_TRUE(slot.held.pending()) << "its kernels run to their end";
  for (const auto memory :
       {ipc::MemoryIs::on_host, ipc::MemoryIs::returning, ipc::MemoryIs::without_room, ipc::MemoryIs::lost}) {
    says(below, {memory});
    EXPECT_EQ(slot.demand, 0u);
    EXPECT_FALSE(slot.held.pending());
  }
}

TEST_F(Swapped, WhoComesBackToAnotherDaemonWaitsForRoomAsBefore) {
  FakeProgram above(scheduler, "a");
  EXPECT_TRUE(hold(above, 80));
  ipc::NewStub page = ipc::NewStub::create().value();
  ipc::store(page.map->swap, ipc::pack_swap({ipc::MemoryIs::on_host}));
  ipc::store(page.map->usage[0].memory, 80 * kMiB);
  auto client = Client::create({4711, 1000, "program"}, "a/b", {0}, std::move(page));
  FakeProgram below(scheduler.add(std::move(client.value()), 1));
  EXPECT_EQ(ipc::load(below.stub->swap_wanted), 1u);
  EXPECT_TRUE(news().starts_with("not-restored: 80M of its memory are on the host, and wait for room"));
  EXPECT_TRUE(hold(above, 20));
  scheduler.swap_clients(3);
  EXPECT_EQ(ipc::load(below.stub->swap_wanted), 0u);
  EXPECT_FALSE(hold(above, 21));
}

TEST_F(Swapped, WhoSaysSoUnaskedHoldsItAll) {
  FakeProgram below(scheduler, "a/b"), above(scheduler, "a");
  EXPECT_TRUE(hold(below, 80));
  says(below, {ipc::MemoryIs::on_host});
  EXPECT_FALSE(hold(above, 80));
}

/// Above it allocations are granted and wait, by how far above the slice is then.
struct MemoryHigh : SchedulerMemory {
  MemoryHigh() {
    sched::SliceTree tree = limited();
    EXPECT_TRUE(tree.create("high", {.memory_high = 100 * kMiB}, kRoot));
    EXPECT_TRUE(tree.create("high/below", {}, kRoot));
    EXPECT_TRUE(tree.create("both", {.memory_max = 110 * kMiB, .memory_high = 50 * kMiB}, kRoot));
    scheduler.set_tree(tree, 0);
  }
  std::int64_t wait_us(FakeProgram& program, std::uint64_t mib) {
    const auto answer = scheduler.hold_memory(*program.client, 0, mib * kMiB, 1);
    EXPECT_TRUE(answer.granted);
    ipc::store(program.stub->usage[0].memory, mib * kMiB);
    return answer.wait.count();
  }
};

TEST_F(MemoryHigh, AllocationsAboveItWaitTheLongerTheFurtherAbove) {
  FakeProgram one(scheduler, "high"), two(scheduler, "high/below"), beside(scheduler, "free");
  EXPECT_TRUE(two.memory_limited());
  EXPECT_EQ(ipc::load(two.stub->grant[0].memory_max), ipc::kNoMemoryMax);
  EXPECT_EQ(wait_us(one, 60), 0);
  EXPECT_EQ(wait_us(two, 40), 0);
  EXPECT_EQ(wait_us(two, 45), 4'000) << "a fifth of the quarter above, squared";
  EXPECT_EQ(wait_us(one, 65), 16'000);
  EXPECT_EQ(wait_us(one, 80), 100'000);
  EXPECT_EQ(wait_us(one, 1000), 100'000) << "never longer";
  EXPECT_EQ(wait_us(one, 1000), 0) << "no more than it holds";
  EXPECT_EQ(wait_us(one, 10), 0) << "it has freed memory";
  EXPECT_EQ(wait_us(one, 20), 0);
  EXPECT_EQ(wait_us(beside, 1000), 0);
}

TEST_F(MemoryHigh, WhatIsRefusedDoesNotWait) {
  FakeProgram one(scheduler, "both");
  const auto waits = scheduler.hold_memory(*one.client, 0, 60 * kMiB, 1);
  EXPECT_TRUE(waits.granted);
  EXPECT_EQ(waits.decided_by, "both");
  EXPECT_EQ(waits.total, 110 * kMiB);
  const auto refused = scheduler.hold_memory(*one.client, 0, 111 * kMiB, 1);
  EXPECT_FALSE(refused.granted);
  EXPECT_EQ(refused.wait.count(), 0);
  EXPECT_EQ(refused.decided_by, "both");
}

TEST_F(SchedulerMemory, WhatIsKeptForASliceIsRefusedToOthers) {
  FakeProgram ls(scheduler, "free"), batch(scheduler, "a");
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.create("ls", {.memory_min = 1000 * static_cast<std::int64_t>(kMiB)}, kRoot));
  ASSERT_TRUE(tree.change("a", {.memory_unlimited = true}, kRoot));
  scheduler.set_tree(tree, 1);
  scheduler.move({ls.client}, "ls", 1);
  EXPECT_TRUE(batch.memory_limited());
  EXPECT_TRUE(hold(batch, 24));
  const auto refused = scheduler.hold_memory(*batch.client, 0, 25 * kMiB, 1);
  EXPECT_FALSE(refused.granted);
  EXPECT_EQ(refused.decided_by, "ls");
  EXPECT_TRUE(refused.kept);
  EXPECT_TRUE(hold(ls, 1000));
  EXPECT_FALSE(hold(ls, 1001));
  EXPECT_TRUE(hold(batch, 0));
  EXPECT_TRUE(hold(ls, 1024));
  EXPECT_FALSE(hold(batch, 1));
  ASSERT_TRUE(tree.change("ls", {.memory_min = 0}, kRoot));
  scheduler.set_tree(tree, 1);
  EXPECT_FALSE(batch.memory_limited());
}

TEST_F(SchedulerMemory, WhereTheDeviceIsFullWhoAsksIsRefusedForItself) {
  FakeProgram ls(scheduler, "free"), batch(scheduler, "free");
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.create("ls", {.memory_min = 1000 * static_cast<std::int64_t>(kMiB)}, kRoot));
  scheduler.set_tree(tree, 1);
  scheduler.move({ls.client}, "ls", 1);
  EXPECT_TRUE(hold(ls, 1000));
  EXPECT_TRUE(hold(batch, 24));
  const auto full = scheduler.hold_memory(*batch.client, 0, 25 * kMiB, 1);
  EXPECT_FALSE(full.granted);
  EXPECT_TRUE(full.full);
  EXPECT_FALSE(full.kept) << "nothing that is kept is unused";
  EXPECT_EQ(full.decided_by, "free");
  ASSERT_TRUE(tree.change("free", {.memory_max = 30 * static_cast<std::int64_t>(kMiB)}, kRoot));
  scheduler.set_tree(tree, 1);
  EXPECT_TRUE(scheduler.hold_memory(*batch.client, 0, 30 * kMiB, 1).full);
  const auto limited = scheduler.hold_memory(*batch.client, 0, 31 * kMiB, 1);
  EXPECT_FALSE(limited.full) << "its own limit refuses that too";
  EXPECT_EQ(limited.decided_by, "free");
  EXPECT_EQ(scheduler.memory_held(0).front(), 1024 * kMiB);
  EXPECT_EQ(scheduler.slice_use().back().on[0].memory, 1000 * kMiB);
}

TEST_F(SchedulerMemory, EachDeviceCountsForItself) {
  FakeProgram one(scheduler, "a", {0, 1}), other_order(scheduler, "a", {1, 0});
  EXPECT_TRUE(hold(one, 100, 0));
  EXPECT_TRUE(hold(other_order, 100, 0));
  EXPECT_FALSE(hold(one, 1, 1));
  EXPECT_FALSE(hold(other_order, 1, 1));
}

TEST_F(SchedulerMemory, ALimitSetLaterCountsWhatIsHeldAndTakesNothingAway) {
  FakeProgram one(scheduler, "free"), two(scheduler, "free");
  ipc::store(one.stub->usage[0].memory, 60 * kMiB);
  ipc::store(two.stub->usage[0].memory, 30 * kMiB);
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("free", {.memory_max = 70 * kMiB}, kRoot));
  scheduler.set_tree(tree, 1);
  EXPECT_TRUE(one.memory_limited());
  EXPECT_FALSE(hold(two, 31));
  EXPECT_FALSE(hold(one, 61));
  ipc::store(one.stub->usage[0].memory, 20 * kMiB);
  EXPECT_TRUE(hold(two, 50));
  EXPECT_FALSE(hold(two, 51));
}

TEST_F(SchedulerMemory, WithoutALimitNothingIsRemembered) {
  FakeProgram one(scheduler, "a"), two(scheduler, "a");
  EXPECT_TRUE(hold(one, 90));
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("a", {.memory_unlimited = true}, kRoot));
  scheduler.set_tree(tree, 1);
  ipc::store(one.stub->usage[0].memory, 10 * kMiB);  // without asking
  ASSERT_TRUE(tree.change("a", {.memory_max = 100 * kMiB}, kRoot));
  scheduler.set_tree(tree, 2);
  EXPECT_TRUE(hold(two, 90));
}

TEST_F(SchedulerMemory, AProgramThatIsGoneHoldsNothing) {
  FakeProgram one(scheduler, "a"), two(scheduler, "a");
  EXPECT_TRUE(hold(one, 100));
  EXPECT_FALSE(hold(two, 1));
  scheduler.remove(*one.client, 1);
  EXPECT_TRUE(hold(two, 100));
}

TEST_F(SchedulerMemory, NobodyHoldsMoreThanThereIs) {
  FakeProgram one(scheduler, "a"), two(scheduler, "a");
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("a", {.memory_max = 4096 * static_cast<std::int64_t>(kMiB)}, kRoot));
  scheduler.set_tree(tree, 1);
  ipc::store(one.stub->usage[0].memory, ~std::uint64_t{0});  // a lie; the device has 1024 MiB
  EXPECT_TRUE(hold(two, 3072));
  EXPECT_FALSE(hold(two, 3073));
}

}  // namespace
}  // namespace gpuctl::daemon
