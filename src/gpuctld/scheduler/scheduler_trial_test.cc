// Programs under `sim` that get on better when they are left to the GPU (sched::Trial), in the daemon.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon::scheduler_trial_test {
namespace {

constexpr DaemonOptions kByCapacity{.placement = Placement::capacity};

sched::SliceTree two_slices(const std::string& policy, const sched::SliceChange& of_one = {}) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.change("/", {.policy = policy}, kRoot));
  EXPECT_TRUE(tree.create("one", of_one, kRoot));
  EXPECT_TRUE(tree.create("other", {}, kRoot));
  return tree;
}

/// A GPU that programs can share by time.
Gpu nvidia() {
  Gpu found = gpu(132);
  found.software = false;
  return found;
}

/// Two programs that always have a launch outstanding. Each ends so many launches in 10 ms.
struct Pair {
  explicit Pair(sched::SliceTree tree, const DaemonOptions& options = kByCapacity)
      : scheduler({nvidia()}, std::move(tree), options), one(scheduler, "one"), other(scheduler, "other") {
    other.kernel = 8;
  }

  void run(std::uint64_t ms, std::uint64_t under_policy, std::uint64_t on_gpu) {
    for (const std::uint64_t end = now + ms; now < end; now += 10) {
      for (FakeJob* job : {&one, &other}) {
        job->launch(is_free(*job) ? on_gpu : under_policy);
        job->head(++launches, 1320);
      }
      settle(scheduler, {&one, &other}, now * kMs);
    }
  }

  Scheduler scheduler;
  FakeJob one, other;
  std::uint64_t now = 1, launches = 0;
};

TEST(TrialInScheduler, ProgramsAreLeftToTheGpuIfTheyGetOnBetterSo) {
  Pair better(two_slices("sim")), worse(two_slices("sim"));
  better.run(1500, 3, 4);
  worse.run(1500, 4, 3);
  for (const FakeJob* job : {&better.one, &better.other}) {
    EXPECT_TRUE(is_free(*job));
    EXPECT_EQ(job->granted(), 132u);
    EXPECT_EQ(ipc::load(job->stub->grant[0].jobs), ipc::kNoJobs);
    EXPECT_TRUE(ipc::load(job->stub->grant[0].flags) & ipc::kReportWork) << "so that its launches are counted";
  }
  for (const FakeJob* job : {&worse.one, &worse.other}) {
    EXPECT_FALSE(is_free(*job));
    EXPECT_NE(job->state(), "");
  }
  EXPECT_LE(worse.scheduler.again_ns(), 12'000 * kMs) << "tried again";
}

TEST(TrialInScheduler, WhatElseIsInForceKeepsThemFromIt) {
  Pair limited(two_slices("sim", {.max = 66}));
  Pair as_printed(two_slices("sim:trial=0"));
  Pair by_turns(two_slices("sim"), {});
  by_turns.scheduler.set_time_sliced(true, 1);
  Pair always(two_slices("sim"), {.always_preemptible = true, .placement = Placement::capacity});
  for (Pair* pair : {&limited, &as_printed, &by_turns, &always}) {
    for (int i = 0; i < 30; ++i) {
      pair->run(100, 3, 100);
      EXPECT_FALSE(is_free(pair->other));
    }
  }
}

TEST(TrialInScheduler, ALimitEndsIt) {
  Pair pair(two_slices("sim"));
  pair.run(1500, 3, 4);
  EXPECT_TRUE(is_free(pair.one));
  pair.scheduler.set_tree(two_slices("sim", {.max = 66}), pair.now * kMs);
  pair.run(10, 3, 4);
  EXPECT_FALSE(is_free(pair.one));
  pair.scheduler.set_tree(two_slices("sim"), pair.now * kMs);
  pair.run(1500, 3, 4);
  EXPECT_TRUE(is_free(pair.one));
}

TEST(TrialInScheduler, AProgramThatGoesAwayLeavesTheOtherToThePolicy) {
  Pair pair(two_slices("sim"));
  pair.run(1500, 3, 4);
  pair.scheduler.remove(*pair.other.client, pair.now * kMs);
  pair.one.head(++pair.launches, 1320);
  settle(pair.scheduler, {&pair.one}, (pair.now + 10) * kMs);
  EXPECT_FALSE(is_free(pair.one)) << "alone it has the whole GPU, which teaches its curve";
  EXPECT_EQ(pair.one.granted(), 132u);
  FakeJob third(pair.scheduler, "other");
  third.head(++pair.launches, 1320);
  settle(pair.scheduler, {&pair.one, &third}, (pair.now + 20) * kMs);
  EXPECT_EQ(pair.one.state(), "running");
  EXPECT_EQ(third.state(), "running");
}

}  // namespace
}  // namespace gpuctl::daemon::scheduler_trial_test
