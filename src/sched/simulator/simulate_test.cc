// The model of a device: the cost of SMs changing hands.
#include "sched/simulator/simulate.h"

#include <gtest/gtest.h>

namespace gpuctl::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Workload two(Time preempt, Time dispatch) {
  Workload w;
  w.capsm = CapSM{4};
  w.preempt = preempt;
  w.dispatch = dispatch;
  w.applications = {{.name = "a", .alone = milliseconds{10}, .start = Time{0}},
                    {.name = "b", .alone = milliseconds{10}, .start = Time{0}}};
  return w;
}

Outcome run(const Workload& w, const std::string& policy) {
  return simulate(
      w, [&](const PolicyInputs& inputs) { return make_job_policy(policy, inputs).value(); }, 1);
}

TEST(Simulate, EndsThoughReservesLeaveNothingForSome) {
  Workload w = two({}, {});
  w.applications[0].limits.reserve = w.capsm;
  const Outcome outcome = run(w, "share");
  ASSERT_EQ(outcome.launches.size(), 1u) << "the other never starts";
  EXPECT_EQ(outcome.end, milliseconds{10});
}

/// A server, which waits for block-tasks of batch unless SMs are kept for it.
Workload server_beside_batch(LatencyTarget target) {
  Workload w;
  w.capsm = CapSM{132};
  w.until = std::chrono::seconds{60};
  w.applications = {
      {.name = "server",
       .alone = milliseconds{1},
       .vary = Vary::lognormal,
       .deviation = 0.1,
       .need = CapSM{16},
       .start = Time{0},
       .latency = target,
       .endless = true,
       .think = milliseconds{9}},
      {.name = "batch", .alone = milliseconds{400}, .task = milliseconds{8}, .start = Time{0}, .endless = true}};
  return w;
}

/// Of the server's launches that ended in the last 30 s, the part that took longer; and how many launches batch had.
std::pair<double, int> longer_than_3ms(const Outcome& outcome) {
  int count = 0, longer = 0, batch = 0;
  for (const Launch& launch : outcome.launches) {
    batch += launch.application == 1;
    if (launch.application != 0 || launch.finished < std::chrono::seconds{30}) continue;
    ++count, longer += launch.finished - launch.arrived > milliseconds{3};
  }
  return {static_cast<double>(longer) / count, batch};
}

TEST(Simulate, SmsAreKeptForATargetAsFarAsItNeedsThem) {
  const auto [without, most] = longer_than_3ms(run(server_beside_batch({}), "share"));
  EXPECT_GT(without, 0.3);
  for (const LatencyTarget target : {LatencyTarget{.at_most = milliseconds{3}}, LatencyTarget{.multiple = 2.4}}) {
    const auto [with, batch] = longer_than_3ms(run(server_beside_batch(target), "share"));
    EXPECT_LE(with, 0.03);  // less is tried meanwhile
    EXPECT_GE(batch, most * 3 / 4);
  }
}

TEST(Simulate, AnIsolatedApplicationTakesTurnsOfTheWholeGpu) {
  Workload w = two({}, {});
  w.applications[1].isolated = true;
  w.turn = milliseconds{1};
  w.switch_cost = microseconds{200};
  w.applications[1].turn = milliseconds{2};
  w.applications[0].task = milliseconds{8};  // the hardware stops it within a block
  const Outcome outcome = run(w, "fcfs");
  ASSERT_EQ(outcome.launches.size(), 2u);
  EXPECT_EQ(outcome.launches[0].application, 1u) << "its turns are longer";
  // Five turns of the one and five of the other, the other one first: ten switches but none before the first.
  EXPECT_EQ(outcome.launches[0].finished, milliseconds{5 + 10} + 10 * microseconds{200} - microseconds{200});
  EXPECT_EQ(outcome.launches[1].finished, milliseconds{20} + 10 * microseconds{200});
  EXPECT_NEAR(outcome.lost, 4 * 10 * 200e-6, 1e-9) << "CapSM x seconds";
  EXPECT_NEAR(outcome.held[0], 4 * 10e-3, 1e-6);
}

TEST(Simulate, WhoHasNothingToRunGivesHisTurnAway) {
  Workload w = two({}, {});
  w.applications[0].isolated = w.applications[1].isolated = true;
  w.switch_cost = microseconds{100};
  w.applications[1].start = milliseconds{11};
  const Outcome outcome = run(w, "fcfs");
  ASSERT_EQ(outcome.launches.size(), 2u);
  EXPECT_EQ(outcome.launches[0].finished, milliseconds{10} + microseconds{100});
  EXPECT_EQ(outcome.launches[1].finished, milliseconds{21} + microseconds{100});
}

TEST(Simulate, AContextStandsStillWhileOthersHaveTheGpu) {
  Workload w = two({}, {});
  w.turn = milliseconds{2};
  w.applications[0].task = milliseconds{1};
  w.applications[1].isolated = true;
  w.applications[1].turn = milliseconds{2};
  w.applications.push_back({.name = "high", .alone = milliseconds{1}, .start = microseconds{3500}, .priority = 1});
  const Outcome outcome = run(w, "hpf");
  ASSERT_EQ(outcome.launches.size(), 3u);
  EXPECT_EQ(outcome.launches[0].application, 2u);
  EXPECT_EQ(outcome.launches[0].finished, milliseconds{6}) << "the block-task it waits for goes on at 4 ms";
  EXPECT_EQ(outcome.launches[1].application, 1u);
  EXPECT_EQ(outcome.launches[1].finished, milliseconds{20});
  EXPECT_EQ(outcome.launches[2].finished, microseconds{21500}) << "half of the block-task is lost";
}

TEST(Simulate, AnIsolatedApplicationKeepsNoSmsFromOthers) {
  Workload w = two({}, {});
  w.applications[1].isolated = true;
  w.applications[1].limits.reserve = w.capsm;
  EXPECT_EQ(run(w, "share").launches.size(), 2u);
}

/// A server as in docs/latency.md, by turns with batch. Turns of batch last 2 ms without a target.
TEST(Simulate, TurnsBecomeShorterForATarget) {
  for (const bool server_is_isolated : {true, false}) {
    Workload w = server_beside_batch({});
    w.applications[server_is_isolated ? 0 : 1].isolated = true;
    w.switch_cost = microseconds{160};
    const auto longer = [](const Outcome& outcome) {
      int count = 0, found = 0;
      for (const Launch& launch : outcome.launches)
        if (launch.application == 0 && launch.finished > std::chrono::seconds{30})
          ++count, found += launch.finished - launch.arrived > milliseconds{2};
      return static_cast<double>(found) / count;
    };
    EXPECT_GT(longer(run(w, "share")), 0.3);
    w.applications[0].latency = {.at_most = milliseconds{2}};
    EXPECT_LE(longer(run(w, "share")), 0.03) << server_is_isolated;
  }
}

TEST(Simulate, WhatWouldEndAfterTheEndOfTimeNeverEnds) {
  const Time year = std::chrono::hours{24 * 365};
  Workload w = two({}, {});
  w.capsm = CapSM{10000};
  w.applications[0].alone = year / 2;
  w.applications[0].limits.max = CapSM{1};
  w.applications[1].limits.max = CapSM{5000};
  const Outcome slow = run(w, "share");
  ASSERT_EQ(slow.launches.size(), 1u);
  EXPECT_EQ(slow.launches[0].application, 1u);
  EXPECT_LT(slow.decisions, 100u);
  Workload many = two({}, {});
  many.applications.resize(1);
  many.applications[0].alone = year;
  many.applications[0].repeat = 400;
  const Outcome century = run(many, "fcfs");
  EXPECT_EQ(century.launches.size(), 146u);
  EXPECT_EQ(century.end, century.launches.size() * year);
}

TEST(Simulate, ARunWithTooManyLaunchesEnds) {
  Workload w = two({}, {});
  w.applications[0].alone = w.applications[1].alone = Time{1};
  w.applications[0].repeat = w.applications[1].repeat = 1'000'000'000;
  const Outcome outcome = run(w, "fcfs");
  EXPECT_TRUE(outcome.too_many);
  EXPECT_LE(outcome.launches.size(), kMostLaunches);
  w.until = std::chrono::microseconds{1};
  EXPECT_FALSE(run(w, "fcfs").too_many) << "most of them would come later";
  w.applications[0].instances = 2'000'000'000;
  EXPECT_TRUE(run(w, "fcfs").too_many);
}

TEST(Simulate, AJobWorksOnlyOnceItIsDispatched) {
  Workload w = two({}, microseconds{300});
  const Outcome outcome = run(w, "fcfs");
  ASSERT_EQ(outcome.launches.size(), 2u);
  EXPECT_EQ(outcome.launches[0].finished, microseconds{10300});
  EXPECT_EQ(outcome.launches[1].finished, microseconds{20600});
  EXPECT_NEAR(outcome.lost, 4 * 600e-6, 1e-9) << "CapSM x seconds";
}

TEST(Simulate, ASliceBeginsWhenTheJobWorks) {
  const Outcome outcome = run(two({}, microseconds{500}), "rr:quantum_ms=2");
  EXPECT_EQ(outcome.evictions, 8u);
  EXPECT_EQ(outcome.end, milliseconds{25}) << "five slices of each, all of 2 ms and each after half a millisecond";
}

TEST(Simulate, AnEvictionCostsWhatItTakesAndTheDispatchAfterIt) {
  Workload w = two(microseconds{50}, microseconds{100});
  w.applications[1] = {.name = "high", .alone = milliseconds{1}, .start = milliseconds{3}, .priority = 1};
  const Outcome outcome = run(w, "hpf");
  ASSERT_EQ(outcome.launches.size(), 2u);
  EXPECT_EQ(outcome.launches[0].finished, microseconds{3000 + 50 + 100 + 1000});
  EXPECT_EQ(outcome.launches[1].finished, microseconds{11000 + 50 + 3 * 100});
}

TEST(Simulate, MoreSmsThanAJobFillsAreOfUseAsFarAsItsCurveGoes) {
  Workload w = two({}, {});
  const std::vector<CurvePoint> curve{{CapSM{2}, milliseconds{2}}, {CapSM{3}, milliseconds{1}}};
  w.applications[1] = {
      .name = "high", .alone = milliseconds{1}, .need = CapSM{2}, .curve = curve, .start = Time{0}, .priority = 1};
  EXPECT_EQ(run(w, "hpf:spatial").launches[0].finished, milliseconds{2});
  EXPECT_EQ(run(w, "hpf:spatial:extra=1").launches[0].finished, milliseconds{1});
  const Outcome all = run(w, "hpf:spatial:extra=2");
  EXPECT_EQ(all.launches[0].finished, milliseconds{1}) << "the fourth is of no use";
  EXPECT_EQ(all.launches[1].finished, milliseconds{11}) << "but the other has none";
}

TEST(Simulate, WhoDoesNotWorkYetIsEvictedAtOnce) {
  Workload w = two(microseconds{50}, microseconds{500});
  w.applications[1] = {.name = "high", .alone = milliseconds{1}, .start = microseconds{200}, .priority = 1};
  const Outcome outcome = run(w, "hpf");
  ASSERT_EQ(outcome.launches.size(), 2u);
  EXPECT_EQ(outcome.launches[0].finished, microseconds{200 + 500 + 1000});
  EXPECT_EQ(outcome.launches[1].finished, microseconds{1700 + 500 + 10000});
  EXPECT_EQ(outcome.evictions, 0u) << "it had not begun";
}

/// Both have room on each SM of a K40, and use so much of its issue slots.
Workload on_each_sm(double issue) {
  Workload w = two({}, {});
  w.sm = sm_limits("3.5");
  w.capsm = CapSM{w.sm->blocks};
  for (Application& app : w.applications) app.block = {128, 32, 0}, app.need = CapSM{8}, app.issue = issue;
  return w;
}

TEST(Simulate, OnTheSameSmsIssueSlotsAreShared) {
  EXPECT_EQ(run(on_each_sm(0.4), "sim").end, milliseconds{10});
  EXPECT_EQ(run(on_each_sm(0.8), "sim").end, milliseconds{16});
  EXPECT_EQ(run(on_each_sm(0.8), "fcfs").end, milliseconds{20});
}

TEST(Simulate, NoWorkerStartsWhereThereIsNoRoomForIt) {
  Workload w = on_each_sm(0);
  w.applications[0].block.shared = w.applications[1].block.shared = 7 * 1024;
  w.applications[1].need = CapSM{};  // six fit
  EXPECT_EQ(run(w, "sim:floor=0").end, milliseconds{20}) << "of more workers together it would be less";
}

}  // namespace
}  // namespace gpuctl::sched
