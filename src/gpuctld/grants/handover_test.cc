#include "gpuctld/grants/handover.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

constexpr std::uint32_t kSms = 132;
using Counts = std::vector<std::uint32_t>;

/// Clients of slices of their own; the first slice has a reserve.
struct Step {
  /// What is decided for each.
  explicit Step(const Counts& decided) {
    decision.nodes.resize(1 + decided.size());
    for (std::uint32_t i = 0; i < decided.size(); ++i) {
      decision.asked.push_back({.node = 1 + i});
      decision.clients.push_back({.capsm = decided[i]});
      decision.nodes[1 + i].inhabited = true;
    }
    decision.nodes[1].reserved = true;
    clients.resize(decided.size());
    next.resize(decided.size());
  }
  void busy(std::size_t client, std::uint32_t written, std::uint32_t may_use) {
    clients[client] = {.written = written, .may_use = may_use, .busy = true};
  }
  bool waits() { return handover.step(decision, clients, kSms, next); }
  void place(bool time_sliced = false) {
    daemon::place(decision, clients, {.capacity = sched::CapSM{kSms}, .time_sliced = time_sliced}, next);
  }
  Counts grants() const {
    Counts counts;
    for (const NextGrant& grant : next) counts.push_back(grant.capsm);
    return counts;
  }

  DeviceDecision decision;
  std::vector<GrantState> clients;
  std::vector<NextGrant> next;
  Handover handover;
};

TEST(Handover, WhatAnotherMayBeUsingIsWithheld) {
  Step step({8, 124});
  step.busy(1, 132, 132);
  EXPECT_TRUE(step.waits());
  EXPECT_EQ(step.grants(), (Counts{0, 124}));
  step.busy(1, 124, 132);  // it was told and has not left
  EXPECT_TRUE(step.waits());
  EXPECT_EQ(step.grants(), (Counts{0, 124}));
  step.busy(1, 124, 124);
  EXPECT_FALSE(step.waits());
  EXPECT_EQ(step.grants(), (Counts{8, 124}));
}

TEST(Handover, WhatIsOnlyRecordedCountsAgainstOthersAndIsNotGivenBack) {
  Step step({132, 132});
  step.busy(0, 32, 132);  // by their records, which are of different moments
  step.busy(1, 0, 100);
  step.clients[0].doubtful = step.clients[1].doubtful = true;
  EXPECT_TRUE(step.waits());
  EXPECT_EQ(step.grants(), (Counts{32, 0}));
}

TEST(Handover, AfterTheDeadlineNobodyWaits) {
  Step step({8, 124});
  step.busy(1, 124, 132);
  step.clients[1].overdue = true;
  EXPECT_FALSE(step.waits());
  EXPECT_EQ(step.grants(), (Counts{8, 124}));
}

TEST(Handover, NobodyWaitsForAnIdleClient) {
  Step step({132, 0});
  step.clients[1] = {.written = 132, .may_use = 132};
  EXPECT_FALSE(step.waits());
  EXPECT_EQ(step.grants(), (Counts{132, 0}));
}

TEST(Handover, WhatIsLeftGoesToAReserveFirst) {
  Step step({8, 60, 64});
  step.busy(2, 64, 124);  // 60 to come, 8 are there
  EXPECT_TRUE(step.waits());
  EXPECT_EQ(step.grants(), (Counts{8, 0, 64}));
}

TEST(Handover, WhatAFreeClientMayUseIsWhatIsDecidedForIt) {
  Step step({8, 124});
  step.busy(0, 132, 132);
  step.decision.clients[0].mode = ipc::Mode::free;
  EXPECT_FALSE(step.waits());
  step.place();
  EXPECT_EQ(step.grants(), (Counts{132, 124})) << "its page says the whole device";
}

TEST(Handover, AReserveAtRestCountsOnceForAllClientsOfItsSlice) {
  Step step({8, 8, 124});
  step.decision.asked[1].node = 1;
  step.decision.nodes[1].at_rest = 8;
  step.busy(2, 124, 124);
  EXPECT_FALSE(step.waits());
  EXPECT_EQ(step.grants(), (Counts{8, 8, 124}));
}

TEST(Handover, AReserveWithoutClientsStaysFree) {
  Step step({0, 62, 62});
  step.decision.nodes.push_back({.at_rest = 8});
  step.busy(1, 62, 124);
  EXPECT_TRUE(step.waits());
  EXPECT_EQ(step.grants(), (Counts{0, 62, 0}));
}

TEST(Place, IsWhatWasDecidedAndIdleIsWhatNobodyBusyMayUse) {
  Step step({8, 50, 30});
  for (std::size_t i = 0; i < 3; ++i) step.busy(i, step.decision.clients[i].capsm, 0);
  step.clients[1].busy = false;
  step.decision.clients[1].first = 8;
  step.decision.clients[2].first = 58;
  EXPECT_FALSE(step.waits());
  step.place();
  EXPECT_EQ(step.next[0].first, 0u);
  EXPECT_EQ(step.next[1].first, 8u);
  EXPECT_EQ(step.next[2].first, 58u);
  EXPECT_EQ(step.next[0].idle, kSms - 38);
  EXPECT_EQ(step.next[1].idle, kSms - 38 - 50);
  step.place(true);
  EXPECT_EQ(step.next[2].first, 0u) << "the device is its own in its turn";
}

TEST(Place, WhatAClientHasNotLeftIsNotIdle) {
  Step step({0, 100});
  step.busy(1, 100, 132);
  step.waits();
  step.place();
  EXPECT_EQ(step.next[0].idle, 0u);
}

}  // namespace
}  // namespace gpuctl::daemon
