// Policies for jobs that the GPU's own priority levels carry out.
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

bool is_free(const FakeJob& job) {
  return (ipc::load(job.stub->grant[0].flags) & ipc::kFree) != 0;
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
  FakeJob low(scheduler, "low"), high(scheduler, "high");
  EXPECT_FALSE(is_free(low)) << "six priorities, and five levels";
}

TEST(LevelsInScheduler, NorWhereProgramsTakeTurnsOnTheGpu) {
  Gpu hardware = gpu(132);
  hardware.software = false;
  Scheduler scheduler({hardware}, levels("hpf"));
  FakeJob low(scheduler, "low"), high(scheduler, "high");
  EXPECT_TRUE(is_free(low));
  scheduler.set_time_sliced(true, false, 1 * kMs);
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

}  // namespace
}  // namespace gpuctl::daemon
