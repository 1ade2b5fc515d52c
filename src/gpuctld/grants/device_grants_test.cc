// What is written to the clients' pages: handovers, idle SMs and storms. What is decided is tested
// with the scheduler.
#include "gpuctld/grants/device_grants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/sm_range.h"
#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// A batch client that runs on the whole device, and an idle one in `ls`, whose reserve is lent.
class Handover : public testing::Test {
 protected:
  Handover() {
    batch.demand(132);
    scheduler.update(1);
    batch.apply();
    scheduler.update(2);
    EXPECT_EQ(batch.granted(), 132u);
    EXPECT_FALSE(scheduler.waiting());
  }
  Scheduler scheduler{{gpu(132)}, ls_and_batch(sched::ReserveMode::lend)};
  FakeProgram batch{scheduler, "batch"}, ls{scheduler, "ls"};
};

TEST_F(Handover, WhatIsTakenIsGrantedOnlyAfterTheOtherHasLeft) {
  ls.demand(8);
  scheduler.update(3);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(ls.granted(), 0u);
  EXPECT_EQ(ls.decided(), 8u);
  EXPECT_TRUE(scheduler.waiting());
  scheduler.update(10 * kMs);
  EXPECT_EQ(ls.granted(), 0u);
  const std::uint32_t epoch = ls.epoch();
  batch.apply();
  scheduler.update(11 * kMs);
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
  EXPECT_EQ(ls.granted(), 8u);
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
  ASSERT_TRUE(tree.change("batch", {.max = 100, .weight = 200}, kRoot));
  scheduler.set_tree(tree, 3);
  batch.apply();
  scheduler.update(4);
  EXPECT_EQ(ls.granted(), 32u);  // no other client can use them
  batch.demand(10);
  ls.demand(132);
  scheduler.update(5);
  EXPECT_EQ(ls.granted(), 32u);  // 90 more are decided, and batch is still there
  EXPECT_EQ(ls.decided(), 122u);
}

TEST_F(Handover, WhatComesBackIsTheClientsAgainAtOnce) {
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

TEST(DeviceGrants, WhatOneHasLeftGoesToAReserveFirst) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  for (const char* slice : {"one", "two", "three"}) ASSERT_TRUE(tree.create(slice, {}, kRoot));
  ASSERT_TRUE(tree.create("ls", {.reserve = 8, .reserve_mode = "lend", .weight = 200}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram one(scheduler, "one"), two(scheduler, "two"), three(scheduler, "three"), ls(scheduler, "ls");
  one.demand(132);
  two.demand(132);
  scheduler.update(2);
  EXPECT_EQ(one.granted(), 66u);
  EXPECT_EQ(two.granted(), 66u);
  one.demand(30);
  three.demand(132);
  ls.demand(8);
  scheduler.update(3);
  EXPECT_EQ(one.granted(), 30u);
  EXPECT_EQ(two.granted(), 47u);
  EXPECT_EQ(three.granted() + ls.granted(), 0u);
  two.apply();
  scheduler.update(4);
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_EQ(three.granted(), 11u);
  EXPECT_TRUE(scheduler.waiting());
  one.apply();
  scheduler.update(5);
  EXPECT_EQ(three.granted(), 47u);
  EXPECT_FALSE(scheduler.waiting());
}

TEST(DeviceGrants, AnIdleClientKeepsWhatIsDecidedForIt) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("busy", {.max = 84, .weight = 200}, kRoot));
  ASSERT_TRUE(tree.create("idle", {}, kRoot));
  ASSERT_TRUE(tree.create("small", {.max = 50}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram busy(scheduler, "busy"), small(scheduler, "small"), idle(scheduler, "idle");
  busy.demand(60);
  scheduler.update(2);
  busy.apply();
  scheduler.update(3);
  EXPECT_EQ(busy.granted(), 84u);
  EXPECT_EQ(idle.granted(), 24u);
  small.demand(132);
  ASSERT_TRUE(tree.change("busy", {.max = 71}, kRoot));
  scheduler.set_tree(tree, 4);
  EXPECT_EQ(busy.granted(), 71u);  // and 13 that it has not left
  EXPECT_EQ(idle.granted(), 11u);
  EXPECT_EQ(small.decided(), 50u);
  EXPECT_EQ(small.granted(), 37u);
}

TEST(DeviceGrants, AStrictReserveStaysFreeDuringHandovers) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram one(scheduler, "batch"), two(scheduler, "batch");
  one.demand(124);
  scheduler.update(2);
  EXPECT_EQ(one.granted(), 124u);
  two.demand(124);
  scheduler.update(3);
  EXPECT_EQ(one.granted(), 62u);
  EXPECT_EQ(two.granted(), 0u);
  FakeProgram ls(scheduler, "ls");  // the reserve is free for a client that comes now
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_EQ(two.granted(), 0u);
}

TEST(DeviceGrants, ATimeSlicedClientTakesNothingFromOthers) {
  Gpu hardware = gpu(132);
  hardware.software = false;
  sched::SliceTree tree = ls_and_batch(sched::ReserveMode::strict);
  ASSERT_TRUE(tree.create("limited", {.max = 40}, kRoot));
  Scheduler scheduler({hardware}, tree);
  FakeProgram batch(scheduler, "batch"), limited(scheduler, "limited");
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.granted(), 124u);
  scheduler.set_time_sliced(true, false, 3);
  FakeProgram ls(scheduler, "ls");
  EXPECT_EQ(ls.granted(), 132u);  // at once, though another client is busy on all SMs
  ls.demand(8);
  limited.demand(132);
  scheduler.update(4);
  EXPECT_FALSE(scheduler.waiting());
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_EQ(ls.granted(), 132u);
  EXPECT_EQ(limited.granted(), 40u);
  scheduler.set_time_sliced(false, false, 5);  // MPS came: side by side from here on
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_EQ(limited.granted(), 40u);
  EXPECT_EQ(batch.granted(), 84u);
}

TEST(DeviceGrants, AProgramIsToldOfTheSmsThatAreGuaranteed) {
  Gpu hardware = gpu(132);
  hardware.software = false;
  sched::SliceTree tree = ls_and_batch(sched::ReserveMode::strict);
  ASSERT_TRUE(tree.create("limited", {.max = 40}, kRoot));
  Scheduler scheduler({hardware}, tree);
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch"), limited(scheduler, "limited");
  EXPECT_EQ(ls.guaranteed(), 0u);  // all SMs
  EXPECT_EQ(batch.guaranteed(), 124u);
  EXPECT_EQ(limited.guaranteed(), 40u);
  ls.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.guaranteed(), 124u);  // whichever clients have work
  ASSERT_TRUE(tree.change("ls", {.reserve_mode = "active"}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_EQ(batch.guaranteed(), 0u);
  ASSERT_TRUE(tree.change("ls", {.reserve_mode = "strict"}, kRoot));
  scheduler.set_tree(tree, 4);
  EXPECT_EQ(batch.guaranteed(), 124u);
  scheduler.set_time_sliced(true, false, 5);  // a reserve means nothing there
  EXPECT_EQ(batch.guaranteed(), 0u);
  EXPECT_EQ(limited.guaranteed(), 40u);
  ASSERT_TRUE(tree.change("limited", {.max = 0}, kRoot));
  scheduler.set_tree(tree, 6);
  EXPECT_EQ(limited.guaranteed(), 0u);  // suspended, not small
}

TEST(DeviceGrants, WhatAClientToldItsProgramIsSaid) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch");
  EXPECT_EQ(batch.client->usage(0).sms_told, 0);
  ipc::store(batch.stub->told_sms[0], 124u);
  EXPECT_EQ(batch.client->usage(0).sms_told, 124);
  ipc::store(batch.stub->told_sms[0], 0xffffffffu);
  EXPECT_EQ(batch.client->usage(0).sms_told, kMaxSms);
}

TEST(DeviceGrants, ANewReserveIsGrantedWhenOthersHaveLeftIt) {
  Scheduler scheduler({gpu(132)}, sched::SliceTree(sched::CapSM{132}, 0));
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.create("batch", {.weight = 200}, kRoot));
  ASSERT_TRUE(tree.create("ls", {}, kRoot));
  scheduler.set_tree(tree, 1);
  FakeProgram batch(scheduler, "batch"), a(scheduler, "ls"), b(scheduler, "ls");
  batch.demand(132);
  scheduler.update(2);
  ASSERT_EQ(batch.granted(), 132u);
  tree = scheduler.tree();
  ASSERT_TRUE(tree.change("ls", {.reserve = 8, .reserve_mode = "strict"}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(a.granted() + b.granted(), 0u);
  batch.apply();
  scheduler.update(4);
  EXPECT_EQ(a.granted(), 8u);
  EXPECT_EQ(b.granted(), 8u);
}

TEST(DeviceGrants, WhereNothingIsInForceAllMayUseAll) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  for (const char* slice : {"a", "b"}) ASSERT_TRUE(tree.create(slice, {}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram a(scheduler, "a"), b(scheduler, "b");
  a.demand(132);
  b.demand(132);
  scheduler.update(2);
  for (const FakeProgram* program : {&a, &b}) {
    EXPECT_EQ(program->granted(), 132u);
    EXPECT_TRUE(program->stub->grant[0].flags & ipc::kFree);
  }
  EXPECT_FALSE(scheduler.waiting());
  ASSERT_TRUE(tree.change("a", {.weight = 200}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_EQ(a.granted(), 88u) << "it only loses";
  EXPECT_FALSE(a.stub->grant[0].flags & ipc::kFree);
  EXPECT_EQ(b.granted(), 44u);
}

TEST(DeviceGrants, OfAFreeClientsDemandOnlyItsReserveIsKeptClear) {
  Scheduler scheduler({gpu(132)}, [] {
    sched::SliceTree tree(sched::CapSM{132}, 0);
    EXPECT_TRUE(tree.create("ls", {.reserve = 8, .reserve_mode = "lend"}, kRoot));
    EXPECT_TRUE(tree.create("batch", {}, kRoot));
    return tree;
  }());
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_TRUE(ls.stub->grant[0].flags & ipc::kReportWork);
  EXPECT_FALSE(batch.stub->grant[0].flags & ipc::kReportWork);
  ls.demand(132);
  scheduler.update(3);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(ls.granted(), 132u);
}

TEST(DeviceGrants, ClientsOfOneSliceShareItsReserveAtRest) {
  sched::SliceTree tree = ls_and_batch(sched::ReserveMode::strict);
  ASSERT_TRUE(tree.change("ls", {.max = 8}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram batch(scheduler, "batch"), a(scheduler, "ls"), b(scheduler, "ls");
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(a.granted(), 8u);
  EXPECT_EQ(b.granted(), 8u);
  EXPECT_FALSE(scheduler.waiting());
  a.demand(8);
  scheduler.update(3);
  EXPECT_EQ(a.granted(), 8u);
  EXPECT_EQ(b.granted(), 0u);
  b.demand(8);
  scheduler.update(4);
  EXPECT_EQ(a.granted(), 4u);
  EXPECT_EQ(b.granted(), 0u);
  a.apply();
  scheduler.update(5);
  EXPECT_EQ(b.granted(), 4u);
  EXPECT_EQ(batch.granted(), 124u);
}

/// On 24 SMs: clients come, go, change their demand, and are slow to leave what was taken from them.
class Crowd {
 public:
  struct Slow {
    FakeProgram program;
    std::string slice;
    std::uint32_t uses = 0;  ///< the most it was granted since it last left what was taken from it
    std::uint32_t may_use() const { return std::max(uses, program.granted()); }
  };

  explicit Crowd(const char* reserve_mode)
      : scheduler({gpu(24)}, [&] {
          sched::SliceTree tree(sched::CapSM{24}, 0);
          EXPECT_TRUE(tree.create("a", {.reserve = 6, .reserve_mode = reserve_mode, .max = 6}, kRoot));
          EXPECT_TRUE(tree.create("b", {.weight = 300}, kRoot));
          return tree;
        }()) {
    // Each slice has a client at all times. Their weights differ, so all clients obey.
    for (const char* slice : {"a", "b"}) clients.push_back({FakeProgram(scheduler, slice), slice});
  }

  void step(std::uint64_t now_ns) {
    const char* const slices[] = {"a", "b", "/"};
    if (clients.size() < 5 && number(20) == 0) {
      const char* slice = slices[number(2)];
      clients.push_back({FakeProgram(scheduler, slice), slice});
    } else if (!clients.empty()) {
      const auto at = clients.begin() + number(static_cast<std::uint32_t>(clients.size() - 1));
      if (number(100) == 0 && at - clients.begin() >= 2) {
        scheduler.remove(*at->program.client, now_ns);
        clients.erase(at);
      } else if (number(2) == 0) {
        at->program.demand(number(1) * number(30));
      }
    }
    // A client runs on what it is granted when it has work, stays there a while, and says when it has left.
    for (Slow& client : clients) {
      const bool busy = ipc::load(client.program.stub->usage[0].demand) != 0;
      client.uses = busy ? client.may_use() : 0;
      if (!busy || number(5) != 0) continue;
      client.uses = client.program.granted();
      client.program.apply();
    }
    scheduler.update(now_ns);
  }

  std::uint32_t number(std::uint32_t most) {
    return static_cast<std::uint32_t>(random_.below(most + std::uint64_t{1}));
  }

  Scheduler scheduler;
  std::vector<Slow> clients;

 private:
  Random random_{3};
};

TEST(DeviceGrants, NoSmIsEverInTwoHands) {
  Crowd crowd("lend");
  std::uint32_t waits = 0;
  for (std::uint64_t now = 1; now < 20000; ++now) {
    crowd.step(now);
    std::uint32_t used = 0, counted = 0;
    for (const Crowd::Slow& client : crowd.clients) {
      used += client.may_use();
      const Client::Slot& slot = client.program.client->slots()[0];
      counted += slot.busy() ? slot.may_use() : slot.written;
    }
    ASSERT_LE(used, 24u) << "at " << now;
    if (!crowd.scheduler.waiting()) continue;
    ASSERT_EQ(counted, 24u) << "somebody waits for nothing at " << now;
    ++waits;
  }
  EXPECT_GT(waits, 1000u);
}

TEST(DeviceGrants, WhatASliceSharesAtRestIsItsOwnAffair) {
  Crowd crowd("strict");
  std::uint32_t waits = 0, shared = 0;
  for (std::uint64_t now = 1; now < 20000; ++now) {
    crowd.step(now);
    std::uint32_t others = 0, reserve = 0;
    for (const Crowd::Slow& client : crowd.clients) {
      (client.slice == "a" ? reserve : others) += client.may_use();
      ASSERT_LE(client.slice == "a" ? client.may_use() : 0, 6u) << "at " << now;
    }
    ASSERT_LE(others, 18u) << "at " << now;
    shared += reserve > 6;
    waits += crowd.scheduler.waiting();
  }
  EXPECT_GT(waits, 1000u);
  EXPECT_GT(shared, 1000u);
}

TEST(DeviceGrants, ATurnIsNotOverBeforeTheHandover) {
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

TEST_F(Handover, NoTwoArePlacedOnTheSameSms) {
  const auto place = [](const FakeProgram& program) { return program.stub->grant[0].first; };
  ls.demand(8);
  scheduler.update(3);
  batch.apply();
  scheduler.update(4);
  EXPECT_EQ(place(ls), 0u);
  EXPECT_EQ(place(batch), 8u);
  EXPECT_EQ(batch.granted(), 124u);
  FakeProgram other(scheduler, "batch");
  other.demand(132);
  scheduler.update(5);
  for (FakeProgram* program : {&batch, &other}) program->apply();
  scheduler.update(6);
  EXPECT_EQ(place(ls), 0u);
  std::set<std::uint32_t> begins{place(batch), place(other)};
  EXPECT_EQ(begins, (std::set<std::uint32_t>{8, 8 + 62}));
}

TEST(DeviceGrants, IdleCountsWhatNobodyBusyIsGranted) {
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

TEST(DeviceGrants, WhatAClientHasNotLeftIsNotIdle) {
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

TEST(DeviceGrants, UnmanagedDevicesAreNotLimited) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::lend));
  FakeProgram program(scheduler, "/", {-1, 0});
  EXPECT_EQ(program.granted(0), ipc::kUnlimited);
  EXPECT_EQ(program.granted(1), 132u);
}

TEST(DeviceGrants, SmsThatWorkersDoNotCountAreNotGranted) {
  Scheduler scheduler({gpu(300)}, sched::SliceTree(sched::CapSM{300}, 0));
  FakeProgram program(scheduler, "/");
  program.demand(300);
  scheduler.update(1);
  EXPECT_EQ(program.granted(), kMaxSms);
}

TEST(DeviceGrants, TheStrictReserveOfASliceIsToldUnlessItIsLimitedToo) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls"), root(scheduler, "/");
  const auto reserve = [](const FakeProgram& program) { return ipc::load(program.stub->grant[0].reserve); };
  EXPECT_EQ(reserve(ls), 8u);
  EXPECT_EQ(reserve(batch), 0u);
  EXPECT_EQ(reserve(root), 0u);
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.create("ls/a", {.reserve = 4, .reserve_mode = "strict"}, kRoot));
  ASSERT_TRUE(tree.change("ls", {.reserve_mode = "lend"}, kRoot));
  scheduler.set_tree(tree, 2);
  FakeProgram below(scheduler, "ls/a");
  EXPECT_EQ(reserve(ls), 0u);
  EXPECT_EQ(reserve(below), 4u);
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.granted(), 128u);  // it is kept, though the slice above lends
  ASSERT_TRUE(tree.change("ls", {.max = 8}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_EQ(reserve(ls), 0u);
}

TEST(DeviceGrants, AClientIsToldWhetherItIsAloneOnItsGpu) {
  Scheduler scheduler({gpu(132, 0), gpu(132, 1)}, ls_and_batch(sched::ReserveMode::lend));
  FakeProgram both(scheduler, "batch", {0, 1});
  EXPECT_TRUE(both.alone(0));
  {
    FakeProgram other(scheduler, "ls", {1});
    EXPECT_TRUE(both.alone(0));
    EXPECT_FALSE(both.alone(1));
    EXPECT_FALSE(other.alone());
    scheduler.remove(*other.client, 2);
  }
  EXPECT_TRUE(both.alone(1));
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("batch", {.max = 100}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_FALSE(both.alone(0));
}

TEST(DeviceGrants, AStormGrantsRandomPartsOfWhatWasDecided) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch");
  batch.demand(132);
  scheduler.update(1);
  Random random(1);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1000; ++i) {
    scheduler.storm(random, 2);
    const std::uint32_t granted = batch.granted();
    seen.insert(granted);
    EXPECT_FALSE(batch.alone());
    scheduler.update(2);  // a tick leaves it alone
    EXPECT_EQ(batch.granted(), granted);
  }
  EXPECT_GT(seen.size(), 100u);
  EXPECT_EQ(*seen.begin(), 0u);
  EXPECT_EQ(*seen.rbegin(), 124u);
  batch.demand(100);
  scheduler.update(3);
  EXPECT_EQ(batch.granted(), 124u);
}

}  // namespace
}  // namespace gpuctl::daemon
