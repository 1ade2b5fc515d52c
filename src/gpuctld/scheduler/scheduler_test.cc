#include "gpuctld/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <optional>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {
namespace {

TEST(Scheduler, GrantsStandBeforeAnybodyAsks) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch");
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_NE(batch.epoch(), 0u);
  EXPECT_EQ(batch.stub->grant[0].priority, -5);
}

sched::SliceTree a_and_b(std::optional<std::int64_t> max_of_a = {}) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.create("a", {.max = max_of_a}, kRoot));
  EXPECT_TRUE(tree.create("b", {}, kRoot));
  return tree;
}

TEST(Scheduler, OfWhoIsFreeItIsSaidWhatEachWouldHave) {
  Scheduler scheduler({gpu(132)}, a_and_b());
  FakeProgram one(scheduler, "a"), other(scheduler, "b");
  one.demand(132), other.demand(132);
  scheduler.update(2);
  ASSERT_TRUE(is_free(one));
  EXPECT_EQ(scheduler.slice_use()[1].granted, sched::CapSM{66});
}

/// Nothing is in force for it, so it runs on what the others leave, though no grant says so.
TEST(Scheduler, WhoIsFreeBesideALimitedOneIsSaidToHaveWhatIsLeft) {
  for (const std::int64_t max : {2, 0}) {
    Scheduler scheduler({gpu(132)}, a_and_b(max));
    FakeProgram limited(scheduler, "a"), free(scheduler, "b");
    limited.demand(4), free.demand(132);
    scheduler.update(2);
    ASSERT_TRUE(is_free(free));
    const auto use = scheduler.slice_use();  // of the root, a and b
    EXPECT_EQ(use[0].granted, sched::CapSM{132});
    EXPECT_EQ(use[1].granted, sched::CapSM{static_cast<std::uint32_t>(max)});
    EXPECT_EQ(use[2].granted, sched::CapSM{static_cast<std::uint32_t>(132 - max)});
    free.demand(7);
    scheduler.update(3);
    EXPECT_EQ(scheduler.slice_use()[2].granted, sched::CapSM{7});
  }
}

TEST(Scheduler, DemandOfOneShrinksTheOtherInOnePass) {
  Scheduler scheduler({gpu(132)}, briefly_held_ls_and_batch());
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_EQ(ls.granted(), 0u);
  ls.demand(8);
  scheduler.update(77);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(batch.stub->grant[0].decided_ns, 77u);
  batch.apply();
  scheduler.update(78);
  EXPECT_EQ(ls.granted(), 8u);
  ls.demand(0);
  scheduler.update(1'000'078);
  EXPECT_EQ(batch.granted(), 132u);
}

TEST(Scheduler, NobodyGainsWhatOneMayUseThatBeginsWhileItsGrantIsWritten) {
  Scheduler scheduler({gpu(132)}, briefly_held_ls_and_batch(), {.always_preemptible = true});
  FakeProgram first(scheduler, "batch"), second(scheduler, "batch");
  first.demand(132);
  scheduler.update(2);
  first.demand(0);
  scheduler.update(3);
  ASSERT_EQ(first.granted(), 132u);
  std::uint32_t uses = 0;
  scheduler.before_growth([&](std::uint64_t) {
    first.demand(1);
    uses = std::min(first.granted(), 1u);
    return true;
  });
  second.demand(132);
  scheduler.update(4);
  EXPECT_EQ(uses, 1u);
  EXPECT_LE(uses + second.granted(), 132u);
  scheduler.before_growth({});
  scheduler.update(5);
  EXPECT_LE(uses + second.granted(), 132u);
  first.apply();
  scheduler.update(6);
  EXPECT_EQ(second.granted(), 131u);
  EXPECT_EQ(first.granted(), 1u);
}

TEST(Scheduler, SaysWhoseGrantIsSettledAndHowFarAheadThatLetsItBe) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict), {.settled_ahead = std::chrono::seconds(1)});
  FakeProgram batch(scheduler, "batch");
  EXPECT_TRUE(batch.settled());
  EXPECT_EQ(ipc::load(batch.stub->settled_ahead_ms), 1000u);
  {
    const FakeProgram second(scheduler, "batch");
    EXPECT_TRUE(batch.settled()) << "they have the same SMs in common";
    scheduler.set_options({.settled_ahead = std::chrono::seconds(1), .reserve_by_parts = false}, 2);
    EXPECT_FALSE(batch.settled());
    scheduler.set_options({.settled_ahead = std::chrono::seconds(1)}, 2);
    scheduler.remove(*second.client, 2);
  }
  EXPECT_TRUE(batch.settled());
  scheduler.set_options({.always_preemptible = true, .settled_ahead = std::chrono::seconds(1)}, 3);
  EXPECT_EQ(batch.mode(), ipc::Mode::workers);
  EXPECT_TRUE(batch.settled()) << "as for graphs, which keep their form";
  scheduler.set_options({.settled_ahead = std::chrono::milliseconds(5)}, 3);
  EXPECT_EQ(ipc::load(batch.stub->settled_ahead_ms), 5u);
}

TEST(Scheduler, WhatDoesNotChangeIsNotWritten) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch");
  const std::uint32_t before = batch.epoch();
  batch.demand(124);
  scheduler.update(2);
  scheduler.update(3);
  EXPECT_EQ(batch.epoch(), before);
}

TEST(Scheduler, AChangeIsDecidedAndWrittenOnce) {
  Gpu hardware = gpu(132);
  hardware.software = false;
  Scheduler scheduler({hardware}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  batch.demand(132);
  scheduler.update(2);
  const std::uint32_t epoch = batch.epoch();
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("batch", {.max = 40, .priority = 7}, kRoot));
  scheduler.set_all(tree, {}, true, 3);
  EXPECT_EQ(batch.granted(), 40u);
  EXPECT_EQ(batch.stub->grant[0].priority, 7);
  EXPECT_NE(ls.stub->grant[0].time_slice_us, 0u);
  EXPECT_EQ(batch.epoch(), epoch + 1) << "priority, time slice and grant are one change";
}

TEST(Scheduler, ChangedSettingsReachTheClients) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch");
  batch.demand(132);
  scheduler.update(2);
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("batch", {.max = 40, .priority = 3}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_EQ(batch.granted(), 40u);
  EXPECT_EQ(batch.stub->grant[0].priority, 3);
}

TEST(Scheduler, APriorityIsAPartOfTheGpusLevels) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("ls", {.priority = 50}, kRoot));
  ASSERT_TRUE(tree.create("ls/inner", {.priority = 70}, kRoot));
  ASSERT_TRUE(tree.create("batch", {.priority = -5}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram root(scheduler, "/"), inner(scheduler, "ls/inner"), batch(scheduler, "batch");
  const auto band = [](const FakeProgram& program) { return ipc::band_of(ipc::load(program.stub->grant[0].flags)); };
  EXPECT_EQ(band(batch), (ipc::PriorityBand{0, 3}));
  EXPECT_EQ(band(root), (ipc::PriorityBand{1, 3}));
  EXPECT_EQ(band(inner), (ipc::PriorityBand{2, 3})) << "50: its parent allows no more";
  ASSERT_TRUE(tree.change("batch", {.priority = 0}, kRoot));
  scheduler.set_tree(tree, 2);
  EXPECT_EQ(band(batch), (ipc::PriorityBand{0, 2}));
  EXPECT_EQ(band(inner), (ipc::PriorityBand{1, 2}));
  scheduler.set_hint(*inner.client, 10, 3);
  EXPECT_EQ(band(inner), (ipc::PriorityBand{2, 4})) << "of five levels ls has the third to the fifth, inner the third";
  ASSERT_TRUE(tree.change("batch", {.reserve = 8}, kRoot));
  scheduler.set_tree(tree, 4);
  EXPECT_EQ(band(root), (ipc::PriorityBand{0, 3}));
  EXPECT_EQ(band(batch), (ipc::PriorityBand{1, 3})) << "among equals who has a reserve goes first";
}

TEST(Scheduler, ARemovedClientsGrantIsFreeAtOnce) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram a(scheduler, "batch"), b(scheduler, "batch");
  a.demand(132);
  b.demand(132);
  scheduler.update(2);
  EXPECT_EQ(a.granted(), 62u);
  scheduler.remove(*b.client, 3);
  EXPECT_EQ(a.granted(), 124u);
}

TEST(Scheduler, WhatAFaultedClientHadIsFreeUntilItAsksAnew) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict),
                      {.evict_deadline = std::chrono::seconds(60)});
  FakeProgram a(scheduler, "batch"), b(scheduler, "batch");
  a.demand(100);
  b.demand(132);
  ipc::store(a.stub->usage[0].outstanding, 2u);
  ipc::store(a.stub->usage[0].holding, 66u);
  scheduler.update(2);
  EXPECT_EQ(a.granted(), 62u);
  scheduler.fault(*a.client, 0, 3);
  EXPECT_EQ(b.granted(), 124u);  // at once, though it says that it holds SMs and has left none
  EXPECT_EQ(a.client->describe().state, "faulted");
  scheduler.update(4);
  EXPECT_EQ(b.granted(), 124u);
  EXPECT_FALSE(a.client->busy());
  a.demand(0);
  scheduler.update(5);
  EXPECT_EQ(a.client->describe().state, "faulted");
  a.demand(100);
  scheduler.update(6);
  EXPECT_EQ(a.client->describe().state, "running");
  EXPECT_EQ(a.granted(), 0u);  // b has not left yet
  b.apply();
  scheduler.update(7);
  EXPECT_EQ(a.granted(), 62u);
}

TEST(Scheduler, AFaultIsOneDevicesAlone) {
  Scheduler scheduler({gpu(132), gpu(100, 1)}, briefly_held_ls_and_batch());
  FakeProgram both(scheduler, "batch", {1, 0});
  both.demand(100, 0);
  both.demand(132, 1);
  scheduler.update(2);
  scheduler.fault(*both.client, 0, 3);
  EXPECT_EQ(both.client->slots()[0].demand, 0u);
  EXPECT_EQ(both.client->slots()[1].demand, 132u);
  EXPECT_EQ(both.granted(1), 132u);
}

TEST(Scheduler, NothingThatAClientWritesIsBelieved) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram liar(scheduler, "batch"), other(scheduler, "batch");
  ipc::Usage& usage = liar.stub->usage[0];
  usage.demand = usage.holding = usage.outstanding = usage.applied_epoch = 0xffffffff;
  usage.launches = usage.evict_ns_sum = usage.busy_ns = ~0ull;
  usage.evictions = 1;
  liar.stub->grant[0].epoch = 77;
  liar.stub->devices = 0xffffffff;
  other.demand(124);
  scheduler.update(2);
  scheduler.update(60'000'000);  // it has had its deadline
  EXPECT_EQ(liar.granted(), 62u);
  EXPECT_EQ(other.granted(), 62u);
  const ipc::ClientUsage shown = liar.client->usage(0);
  EXPECT_EQ(shown.holding, 132);
  EXPECT_GE(shown.launches, 0);
  EXPECT_GE(shown.busy_us, 0);
}

TEST(Scheduler, EachDeviceIsDividedByItself) {
  Scheduler scheduler({gpu(132, 0), gpu(60, 1)}, [] {
    sched::SliceTree tree(sched::CapSM{60}, 0);
    EXPECT_TRUE(tree.create("a", {.reserve = 10, .reserve_mode = "strict"}, kRoot));
    return tree;
  }());
  FakeProgram both(scheduler, "/", {1, 0}), second(scheduler, "/", {1}), elsewhere(scheduler, "/", {0, -1});
  both.demand(60, 0);
  second.demand(60);
  scheduler.update(2);
  EXPECT_EQ(both.granted(0), 25u);
  EXPECT_EQ(second.granted(), 25u);
  EXPECT_EQ(both.granted(1) + elsewhere.granted(0), 122u);
  EXPECT_EQ(elsewhere.granted(1), ipc::kUnlimited);
}

TEST(Scheduler, MoreClientsThanSmsTakeTurns) {
  Scheduler scheduler({gpu(2)}, sched::SliceTree(sched::CapSM{2}, 0));
  std::vector<FakeProgram> programs;
  std::vector<bool> served(5, false);
  for (int i = 0; i < 5; ++i) programs.emplace_back(scheduler, "/").demand(2);
  for (std::uint64_t now = 0; now < 1'000'000'000; now += 20'000'000) {
    scheduler.update(now);
    for (FakeProgram& program : programs) program.apply();
    scheduler.update(now + 1);
    for (std::size_t i = 0; i < programs.size(); ++i)
      if (programs[i].granted() != 0) served[i] = true;
  }
  EXPECT_EQ(served, std::vector<bool>(5, true));
}

/// A client has the deadline alone, 50 ms.
const DaemonOptions kNoLongTasks{.longest_block_task = std::chrono::milliseconds(0)};

TEST(Scheduler, AClientThatKeepsSmsPastTheDeadlineIsFoundOnce) {
  Scheduler scheduler({gpu(132)}, briefly_held_ls_and_batch(), kNoLongTasks);
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  batch.demand(132);
  batch.stub->usage[0].holding = 132;
  scheduler.update(1'000'000);
  batch.stub->usage[0].applied_epoch = batch.epoch();
  ls.demand(8);
  scheduler.update(2'000'000);
  EXPECT_TRUE(scheduler.check_deadlines(40'000'000).empty());
  scheduler.update(53'000'000);
  ASSERT_EQ(scheduler.check_deadlines(53'000'000).size(), 1u);
  EXPECT_TRUE(scheduler.check_deadlines(54'000'000).empty());
  EXPECT_EQ(batch.client->describe().state, "disobeying");

  batch.stub->usage[0].holding = 124;
  batch.stub->usage[0].applied_epoch = batch.epoch();
  scheduler.update(55'000'000);
  EXPECT_EQ(batch.client->describe().state, "running");
}

TEST(Scheduler, WhoTookLongToLeaveHasThatMuchMoreTime) {
  constexpr std::uint64_t kMs = 1'000'000;
  Scheduler scheduler({gpu(132)}, briefly_held_ls_and_batch());
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  batch.client->report({{.name = "k", .block_task_ns = 10'000'000'000}});
  batch.demand(132);
  batch.stub->usage[0].holding = 132;
  scheduler.update(kMs);
  batch.apply();
  scheduler.update(2 * kMs);
  ls.demand(8);
  scheduler.update(100 * kMs);
  scheduler.update(149 * kMs);
  EXPECT_EQ(ls.granted(), 0u) << "the deadline is 50 ms";
  scheduler.update(151 * kMs);
  EXPECT_EQ(ls.granted(), 8u);
  batch.apply();
  scheduler.update(180 * kMs);  // it took 80 ms
  ls.demand(0);
  scheduler.update(200 * kMs);
  scheduler.update(201 * kMs);
  EXPECT_EQ(batch.granted(), 132u);
  ls.demand(8);
  scheduler.update(300 * kMs);
  scheduler.update(429 * kMs);
  EXPECT_EQ(ls.granted(), 0u);
  scheduler.update(431 * kMs);
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_TRUE(scheduler.check_deadlines(1349 * kMs).empty()) << "anybody has a second more";
  EXPECT_EQ(scheduler.check_deadlines(1351 * kMs).size(), 1u);
}

TEST(Scheduler, WhoHasNoLongBlockTasksHasTheDeadlineAlone) {
  constexpr std::uint64_t kMs = 1'000'000;
  Scheduler scheduler({gpu(132)}, briefly_held_ls_and_batch());
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  batch.demand(132);
  scheduler.update(kMs);
  for (std::uint64_t now = 100 * kMs; now < 900 * kMs; now += 200 * kMs) {
    batch.apply();
    ls.demand(0);
    scheduler.update(now);
    scheduler.update(now + 1);
    ls.demand(8);
    scheduler.update(now + 2);
    scheduler.update(now + 49 * kMs);
    EXPECT_EQ(ls.granted(), 0u);
    scheduler.update(now + 51 * kMs);
    EXPECT_EQ(ls.granted(), 8u) << "however long it took before";
    scheduler.update(now + 150 * kMs);
  }
}

TEST(Scheduler, WhatAClientSaysOfItsBlockTasksGivesItNoTime) {
  Scheduler scheduler({gpu(132)}, briefly_held_ls_and_batch());
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  batch.client->report({{.name = "k", .block_task_ns = 10'000'000'000}});
  batch.demand(132);
  batch.stub->usage[0].holding = 132;
  scheduler.update(1);
  batch.stub->usage[0].applied_epoch = batch.epoch();
  ls.demand(8);
  scheduler.update(2);
  scheduler.update(49'000'000);
  EXPECT_EQ(ls.granted(), 0u);
  scheduler.update(51'000'000);
  EXPECT_EQ(ls.granted(), 8u) << "the reserve that was lent is back";
}

TEST(Scheduler, ADisobeyingClientIsFoundOncePerEpisode) {
  Scheduler scheduler({gpu(132)}, briefly_held_ls_and_batch(), kNoLongTasks);
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  constexpr std::uint64_t kMs = 1'000'000;
  batch.demand(132);
  batch.stub->usage[0].holding = 132;
  scheduler.update(1);
  int found = 0;
  for (std::uint64_t ms = 1; ms <= 1000; ms += 5) {  // its grant changes all the time, but it never gives SMs back
    ls.demand(ms % 4 < 2 ? 10 : 8);
    scheduler.update(ms * kMs);
    found += static_cast<int>(scheduler.check_deadlines(ms * kMs).size());
  }
  EXPECT_EQ(found, 1);
  batch.apply();
  scheduler.update(1001 * kMs);
  EXPECT_EQ(batch.client->describe().state, "running");
  ls.demand(0);
  scheduler.update(1002 * kMs);
  ls.demand(8);
  scheduler.update(1003 * kMs);
  EXPECT_TRUE(scheduler.check_deadlines(1051 * kMs).empty());
  EXPECT_EQ(scheduler.check_deadlines(1054 * kMs).size(), 1u);
}

TEST(Scheduler, WhoHeldNoMoreThanItsGrantHasAWholeDeadlineAgain) {
  Scheduler scheduler({gpu(132)}, briefly_held_ls_and_batch(), kNoLongTasks);
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  batch.demand(132);
  scheduler.update(1);
  ls.demand(8);
  scheduler.update(2);
  EXPECT_TRUE(scheduler.check_deadlines(100'000'000).empty());  // it holds nothing
  batch.stub->usage[0].holding = 132;
  scheduler.update(101'000'000);
  EXPECT_TRUE(scheduler.check_deadlines(149'000'000).empty());
  EXPECT_EQ(scheduler.check_deadlines(151'000'000).size(), 1u);
}

TEST(Scheduler, KernelsAreKeptWithinBounds) {
  Scheduler scheduler({gpu(8)}, sched::SliceTree(sched::CapSM{8}, 0));
  FakeProgram program(scheduler, "/");
  for (std::size_t i = 0; i < kMaxKernels + 10; ++i) program.client->report({{.name = "k" + std::to_string(i)}});
  EXPECT_EQ(program.client->kernels().size(), kMaxKernels);
  program.client->report({{.name = "k0", .reason = std::string(5000, 'x'), .launches = 9}});
  const auto kernels = program.client->kernels();
  EXPECT_EQ(kernels.size(), kMaxKernels);
  EXPECT_EQ(kernels[0].launches, 9);
  EXPECT_EQ(kernels[0].reason.size(), kMaxKernelText);
}

TEST(Scheduler, AHintStaysWithinTheSlicesPriority) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch");
  scheduler.set_hint(*batch.client, -20, 2);
  EXPECT_EQ(batch.stub->grant[0].priority, -20);
  scheduler.set_hint(*batch.client, 50, 3);
  EXPECT_EQ(batch.stub->grant[0].priority, -5);
}

}  // namespace
}  // namespace gpuctl::daemon
