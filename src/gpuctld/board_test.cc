// What is written to the clients' pages, and for which SMs: handovers, idle SMs and storms. What is decided is tested
// with the scheduler.
#include "gpuctld/board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gpuctld/fake_program.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

SmSet range(std::uint32_t first, std::uint32_t last) {
  return SmSet::first(last + 1) - SmSet::first(first);
}

/// A batch client that runs on the whole device, and an idle one in `ls`, whose reserve is lent.
class Handover : public testing::Test {
 protected:
  Handover() {
    batch.demand(132);
    scheduler.update(1);
    batch.apply();
    scheduler.update(2);
    EXPECT_EQ(batch.sms(), range(0, 131));
    EXPECT_FALSE(scheduler.waiting());
  }
  Scheduler scheduler{{gpu(132)}, ls_and_batch(sched::ReserveMode::lend)};
  FakeProgram batch{scheduler, "batch"}, ls{scheduler, "ls"};
};

TEST_F(Handover, AnSmIsGrantedOnlyAfterTheOtherHasLeftIt) {
  ls.demand(8);
  scheduler.update(3);
  EXPECT_EQ(batch.sms(), range(0, 123));
  EXPECT_EQ(ls.granted(), 0u);
  EXPECT_EQ(ls.client->slots()[0].granted.count, 8u);
  EXPECT_TRUE(scheduler.waiting());
  scheduler.update(10 * kMs);
  EXPECT_EQ(ls.granted(), 0u);
  const std::uint32_t epoch = ls.epoch();
  batch.apply();
  scheduler.update(11 * kMs);
  EXPECT_EQ(ls.sms(), range(124, 131));
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_EQ(ls.epoch(), epoch + 1);
  EXPECT_EQ(ls.stub->grant[0].decided_ns, 11 * kMs);
  EXPECT_FALSE(scheduler.waiting());
}

TEST_F(Handover, AfterTheDeadlineItIsGrantedAnyway) {
  batch.client->report({{.name = "k", .block_task_ns = 30'000'000}});
  ls.demand(8);
  scheduler.update(3 * kMs);
  scheduler.update(82 * kMs);
  EXPECT_EQ(ls.granted(), 0u);
  scheduler.update(83 * kMs);
  EXPECT_EQ(ls.sms(), range(124, 131));
  EXPECT_FALSE(scheduler.waiting());
}

TEST_F(Handover, NobodyWaitsForAClientWithNothingOutstanding) {
  batch.demand(0);
  scheduler.update(3);
  ls.demand(132);
  scheduler.update(4);
  EXPECT_EQ(ls.granted(), 132u);
  EXPECT_FALSE(scheduler.waiting());
}

TEST_F(Handover, WhatWasTakenFromAnIdleClientDoesNotCountAgainstIt) {
  batch.demand(0);
  scheduler.update(3);
  ls.demand(132);
  scheduler.update(4);  // batch never says that it has applied this
  ls.demand(0);
  batch.demand(132);
  scheduler.update(100 * kMs);
  EXPECT_EQ(batch.granted(), 132u);
  ls.demand(8);
  scheduler.update(200 * kMs);
  EXPECT_EQ(ls.granted(), 0u);
}

TEST_F(Handover, OutstandingLaunchesHoldSmsWithoutDemandToo) {
  batch.demand(0);
  batch.stub->usage[0].outstanding = 1;
  ls.demand(132);
  scheduler.update(3);
  EXPECT_EQ(batch.granted(), 0u);
  EXPECT_EQ(ls.granted(), 0u);
  batch.stub->usage[0].outstanding = 0;
  scheduler.update(4);
  EXPECT_EQ(ls.granted(), 132u);
}

TEST_F(Handover, WhatIsFreeIsGrantedAtOnce) {
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("batch", {.max = 100}, kRoot));
  scheduler.set_tree(tree, 3);
  batch.apply();
  scheduler.update(4);
  EXPECT_EQ(ls.sms(), range(100, 131));  // nobody else has a use for them
  batch.demand(10);
  ls.demand(132);
  scheduler.update(5);
  EXPECT_EQ(ls.sms(), range(100, 131));  // 22 more are decided, and batch is still there
  EXPECT_EQ(ls.client->slots()[0].granted.count, 122u);
}

TEST_F(Handover, AnSmThatComesBackIsTheClientsAgainAtOnce) {
  ls.demand(8);
  scheduler.update(3);
  EXPECT_EQ(batch.granted(), 124u);
  ls.demand(0);
  scheduler.update(4);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_FALSE(scheduler.waiting());
}

TEST_F(Handover, AClientThatGoesHoldsNothing) {
  ls.demand(8);
  scheduler.update(3);
  EXPECT_EQ(ls.granted(), 0u);
  scheduler.remove(*batch.client, 4);
  EXPECT_EQ(ls.granted(), 132u);
}

/// Clients come, go, ask for this and that, and are slow: no SM is ever in the hands of two.
TEST(Board, NoSmIsEverInTwoHands) {
  std::mt19937_64 random(3);
  const auto number = [&](std::uint32_t most) { return std::uniform_int_distribution<std::uint32_t>(0, most)(random); };
  Scheduler scheduler({gpu(24)}, [] {
    sched::SliceTree tree(sched::CapSM{24}, 0);
    EXPECT_TRUE(tree.create("a", {.reserve = 6, .reserve_mode = "lend"}, kRoot));
    EXPECT_TRUE(tree.create("b", {.weight = 300}, kRoot));
    return tree;
  }());
  struct Slow {
    FakeProgram program;
    SmSet uses;
  };
  std::vector<Slow> clients;
  std::uint32_t waits = 0;
  const char* const slices[] = {"a", "b", "/"};
  for (std::uint64_t now = 1; now < 20000; ++now) {
    if (clients.size() < 5 && number(20) == 0) {
      clients.push_back({FakeProgram(scheduler, slices[number(2)]), {}});
    } else if (!clients.empty()) {
      const auto at = clients.begin() + number(static_cast<std::uint32_t>(clients.size() - 1));
      if (number(100) == 0) {
        scheduler.remove(*at->program.client, now);
        clients.erase(at);
      } else if (number(2) == 0) {
        at->program.demand(number(1) * number(30));
      }
    }
    // A client runs on what it is granted when it has work, stays there a while, and says when it has left.
    for (Slow& client : clients) {
      if (ipc::load(client.program.stub->usage[0].demand) == 0) {
        client.uses = {};
        continue;
      }
      client.uses |= client.program.sms();
      if (number(5) != 0) continue;
      client.uses = client.program.sms();
      client.program.apply();
    }
    scheduler.update(now);
    waits += scheduler.waiting() ? 1 : 0;
    for (const Slow& a : clients) {
      for (const Slow& b : clients) {
        if (&a == &b) continue;
        ASSERT_TRUE((a.uses & b.program.sms()).empty()) << ipc::sms_text(a.uses) << " at " << now;
      }
    }
  }
  EXPECT_GT(waits, 1000u);
}

TEST(Board, ATurnIsNotOverBeforeTheHandover) {
  Scheduler scheduler({gpu(2)}, sched::SliceTree(sched::CapSM{2}, 0));
  std::vector<FakeProgram> programs;
  for (int i = 0; i < 5; ++i) programs.emplace_back(scheduler, "/").demand(2);
  std::vector<std::uint64_t> served_ms(programs.size(), 0), changed_ms(programs.size(), 0);
  std::vector<std::uint32_t> epochs(programs.size(), 0);
  for (std::uint64_t ms = 1; ms <= 3000; ++ms) {
    scheduler.update(ms * kMs);
    for (std::size_t i = 0; i < programs.size(); ++i) {
      if (std::exchange(epochs[i], programs[i].epoch()) != programs[i].epoch()) changed_ms[i] = ms;
      if (ms - changed_ms[i] >= 30) programs[i].apply();  // its block-tasks are longer than a turn
      served_ms[i] += programs[i].granted();
    }
  }
  for (const std::uint64_t served : served_ms) EXPECT_GT(served, 300u);
}

TEST(Board, IdleCountsWhatNobodyBusyIsGranted) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(batch.idle(), 8u);
  EXPECT_EQ(ls.idle(), 0u);
  const std::uint32_t epoch = batch.epoch();
  ls.demand(3);
  scheduler.update(3);
  EXPECT_EQ(batch.idle(), 0u);
  EXPECT_EQ(batch.epoch(), epoch);
  ls.demand(0);
  scheduler.update(4);
  batch.demand(0);
  scheduler.update(5);
  EXPECT_EQ(batch.idle(), 132u - batch.granted());
  EXPECT_EQ(ls.idle(), 132u - ls.granted());
}

TEST(Board, WhatAClientHasNotLeftIsNotIdle) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::lend));
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  batch.demand(132);
  scheduler.update(2);
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("batch", {.max = 100}, kRoot));
  ASSERT_TRUE(tree.change("ls", {.max = 8}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_EQ(ls.idle(), 0u);
  batch.apply();
  scheduler.update(4);
  EXPECT_EQ(ls.idle(), 24u);
  EXPECT_EQ(batch.idle(), 32u);
}

TEST(Board, UnmanagedDevicesAreNotLimited) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::lend));
  FakeProgram program(scheduler, "/", {-1, 0});
  EXPECT_EQ(program.granted(0), ipc::kUnlimited);
  EXPECT_EQ(program.sms(1), range(0, 131));
  EXPECT_EQ(program.granted(1), 132u);
}

TEST(Board, AStormGrantsRandomSubsetsOfWhatWasDecided) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch");
  batch.demand(132);
  scheduler.update(1);
  std::mt19937_64 random(1);
  std::set<std::uint32_t> sizes;
  std::set<SmSet::Words> sets;
  std::vector<int> seen(132, 0);
  for (int i = 0; i < 1000; ++i) {
    scheduler.storm(random, 2);
    const SmSet sms = batch.sms();
    EXPECT_TRUE((sms - range(0, 123)).empty());
    EXPECT_EQ(batch.granted(), sms.size());
    sizes.insert(sms.size());
    sets.insert(sms.words());
    for (std::uint32_t sm = 0; sm < 132; ++sm) seen[sm] += sms.contains(sm);
    scheduler.update(2);  // a tick leaves it alone
    EXPECT_EQ(batch.sms(), sms);
  }
  EXPECT_GT(sizes.size(), 100u);
  EXPECT_TRUE(sizes.contains(0) && sizes.contains(124));
  EXPECT_GT(sets.size(), 950u);
  EXPECT_GT(*std::min_element(seen.begin(), seen.begin() + 124), 400);
  batch.demand(100);
  scheduler.update(3);
  EXPECT_EQ(batch.sms(), range(0, 123));
}

}  // namespace
}  // namespace gpuctl::daemon
