// What follows from the GPU's priority levels: policies for jobs that they carry out.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon {
namespace {

/// Nothing but the policy makes a client obey.
sched::SliceTree levels(const std::string& policy) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.change("/", {.policy = policy}, kRoot));
  EXPECT_TRUE(tree.create("high", {.priority = 10}, kRoot));
  EXPECT_TRUE(tree.create("low", {}, kRoot));
  return tree;
}

TEST(LevelsInScheduler, PrioritiesThatDifferAreLeftToTheGpu) {
  for (const char* policy : {"hpf", "hpf:spatial", "piv"}) {
    Scheduler scheduler({gpu(132)}, levels(policy));
    FakeJob low(scheduler, "low"), high(scheduler, "high");
    low.head(1, 132 * 100);
    high.head(1);
    scheduler.update(1 * kMs);
    for (const FakeJob* job : {&low, &high}) {
      EXPECT_TRUE(is_free(*job)) << policy;
      EXPECT_EQ(job->granted(), 132u) << policy;
      EXPECT_EQ(job->state(), "") << policy;
      EXPECT_EQ(ipc::load(job->stub->grant[0].jobs), ipc::kNoJobs) << policy;
    }
  }
}

TEST(LevelsInScheduler, EqualsTakeTurnsAndSoDoAllBesideThem) {
  Scheduler scheduler({gpu(132)}, levels("hpf"));
  FakeJob low(scheduler, "low"), high(scheduler, "high");
  {
    FakeJob equal(scheduler, "low");
    low.head(1, 132 * 100);
    scheduler.update(1 * kMs);
    low.apply();
    high.head(1);
    scheduler.update(2 * kMs);
    for (const FakeJob* job : {&low, &high, &equal}) EXPECT_FALSE(is_free(*job));
    EXPECT_EQ(low.granted(), 0u);
    EXPECT_EQ(low.state(), "to-evict");
    scheduler.remove(*equal.client, 3 * kMs);
  }
  EXPECT_TRUE(is_free(low));
  EXPECT_EQ(low.granted(), 132u);
  EXPECT_EQ(low.state(), "");
}

TEST(LevelsInScheduler, APriorityThatAProgramGaveUpMakesItAnEqual) {
  Scheduler scheduler({gpu(132)}, levels("hpf"));
  FakeJob low(scheduler, "low"), high(scheduler, "high");
  EXPECT_TRUE(is_free(low));
  scheduler.set_hint(*high.client, 0, 1 * kMs);
  EXPECT_FALSE(is_free(low));
  EXPECT_EQ(high.state(), "idle");
}

TEST(LevelsInScheduler, WhatProtectsFromStarvingIsNotLeftToTheGpu) {
  Scheduler scheduler({gpu(132)}, levels("hpf:protect_ms=50"));
  FakeJob low(scheduler, "low"), high(scheduler, "high");
  EXPECT_FALSE(is_free(low));
}

TEST(LevelsInScheduler, NorIsWhatMoreLevelsWouldBeNeededFor) {
  sched::SliceTree tree = levels("hpf");
  for (std::int32_t priority = 1; priority <= 4; ++priority)
    EXPECT_TRUE(tree.create("more" + std::to_string(priority), {.priority = priority}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeJob low(scheduler, "low");
  {
    FakeJob high(scheduler, "high");
    EXPECT_TRUE(is_free(low)) << "with six priorities and five levels, but these two have one each";
    scheduler.remove(*high.client, 1 * kMs);
  }
  FakeJob next(scheduler, "more1");
  EXPECT_FALSE(is_free(low)) << "these share one";
}

TEST(LevelsInScheduler, NorWhereProgramsTakeTurnsOnTheGpu) {
  Gpu hardware = gpu(132);
  hardware.software = false;
  Scheduler scheduler({hardware}, levels("hpf"));
  FakeJob low(scheduler, "low"), high(scheduler, "high");
  EXPECT_TRUE(is_free(low));
  scheduler.set_time_sliced(true, 1 * kMs);
  EXPECT_FALSE(is_free(low)) << "there is no priority between contexts that are never there together";
}

TEST(LevelsInScheduler, APriorityIsBoundedByTheSlicesAbove) {
  Scheduler scheduler({gpu(132)}, tree_with("hpf"));
  FakeJob high(scheduler, "high"), sub(scheduler, "low/sub");
  high.head(1, 132 * 100);
  scheduler.update(1 * kMs);
  sub.head(1);
  scheduler.update(2 * kMs);
  EXPECT_EQ(high.granted(), 132u) << "low gives its subtree no more than its own priority, 0";
}

TEST(LevelsInScheduler, ThoseOfOthersStayWhateverIsMadeBelowASlice) {
  sched::SliceTree tree = levels("share");
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram low(scheduler, "low"), high(scheduler, "high");
  const auto band = [](const FakeProgram& program) { return ipc::band_of(ipc::load(program.stub->grant[0].flags)); };
  const ipc::PriorityBand before = band(high);
  for (int n = 0; n < 20; ++n) EXPECT_TRUE(tree.create("low/" + std::to_string(n), {.priority = 100 - n}, kRoot));
  for (int n = 0; n < 20; ++n) EXPECT_TRUE(tree.change("low/" + std::to_string(n), {.priority = -n}, kRoot));
  scheduler.set_tree(tree, 1 * kMs);
  FakeProgram greedy(scheduler, "low/0");
  scheduler.set_hint(*greedy.client, -50, 2 * kMs);
  EXPECT_EQ(band(high), before);
  const auto level = [&](const FakeProgram& p) { return band(p).rank * ipc::kBandsApart / band(p).count; };
  EXPECT_LT(level(greedy), level(high));
}

TEST(LevelsInScheduler, ALowSubtreeTakesNoTurnsOfAHigherTenant) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.change("/", {.policy = "hpf"}, kRoot));
  EXPECT_TRUE(tree.create("tenant", {.priority = 50}, kRoot));
  EXPECT_TRUE(tree.create("low", {.priority = -10, .owner_uid = 1000}, kRoot));
  const sched::Caller owner{1000, {}};
  EXPECT_TRUE(tree.create("low/child", {.priority = 100}, owner));
  Gpu hardware = gpu(132);
  hardware.software = false;
  Scheduler scheduler({hardware}, tree, {}, true);
  FakeJob tenant(scheduler, "tenant"), child(scheduler, "low/child");
  tenant.head(1, 132 * 100);
  scheduler.update(1 * kMs);
  child.head(1);
  scheduler.update(2 * kMs);
  EXPECT_EQ(tenant.granted(), 132u);
  EXPECT_EQ(tenant.state(), "running");
  EXPECT_EQ(child.state(), "waiting");
}

/// `ffs` gives turns by weight: a slice has its own part, whatever is below it.
TEST(LevelsInScheduler, WeightsBelowASliceShareItsPartOfTheTurns) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.change("/", {.policy = "ffs:max_overhead=0.01"}, kRoot));
  EXPECT_TRUE(tree.create("tenant", {.weight = 100}, kRoot));
  EXPECT_TRUE(tree.create("low", {.weight = 100}, kRoot));
  EXPECT_TRUE(tree.create("low/child", {.weight = 10'000}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeJob tenant(scheduler, "tenant"), child(scheduler, "low/child"), other(scheduler, "low/child");
  for (FakeJob* job : {&tenant, &child, &other}) job->head(1, 132 * 100'000);
  std::uint64_t tenants = 0, all = 0;
  for (std::uint64_t now = 1 * kMs; now < 2'000 * kMs; now += kMs / 4) {
    for (FakeJob* job : {&tenant, &child, &other}) job->apply();
    scheduler.update(now);
    tenants += tenant.granted() > 0;
    all += tenant.granted() > 0 || child.granted() > 0 || other.granted() > 0;
  }
  EXPECT_NEAR(static_cast<double>(tenants) / static_cast<double>(all), 0.5, 0.05);
}

}  // namespace
}  // namespace gpuctl::daemon
