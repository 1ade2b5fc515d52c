// Quotas: in each period so much time of the whole GPU, counted as it is for the accounts.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon::quotas_test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint32_t kSms = 100;

/// In the middle of a burst all the time, with kernels in one form or the other.
struct Program : FakeProgram {
  using FakeProgram::FakeProgram;
  ipc::LatencyCounts& counts() { return ipc::latency_at(*stub.get(), 0); }
  /// Workers leave at once.
  void works(std::uint32_t sms) {
    demand(sms);
    counts().open = sms > 0;
    ipc::store(stub->usage[0].outstanding, std::uint32_t{sms > 0});
    ipc::store(stub->usage[0].holding, std::min(sms, granted()));
    apply();
  }
  /// Nobody can stop it.
  void runs_original(std::uint32_t sms) {
    demand(sms);
    counts().open = sms > 0;
    counts().original = sms;
    apply();
  }
};

struct Scene {
  explicit Scene(std::vector<std::pair<std::string, ipc::SliceSettings>> of, std::vector<Gpu> gpus = {gpu(kSms)})
      : tree(sched::CapSM{kSms}, 0) {
    for (const auto& [path, settings] : of) EXPECT_TRUE(tree.create(path, settings, kRoot)) << path;
    scheduler.emplace(gpus, tree);
  }
  /// How long the program had SMs, in milliseconds with all of them.
  double pass(std::uint64_t ms, Program& program, std::uint32_t wants) {
    double used = 0;
    for (std::uint64_t i = 0; i < ms; ++i) {
      program.works(wants);
      used += static_cast<double>(std::min(wants, program.granted())) / kSms;
      scheduler->update(now_ns += kMs);
    }
    return used;
  }
  void set(const std::string& path, const ipc::SliceSettings& settings) {
    ASSERT_TRUE(tree.change(path, settings, kRoot));
    scheduler->set_tree(tree, now_ns);
  }

  sched::SliceTree tree;
  std::optional<Scheduler> scheduler;
  std::uint64_t now_ns = 1000 * kMs;
};

TEST(QuotasInScheduler, WhatIsUsedUpWaitsForTheNextPeriodAndOthersGetTheRest) {
  Scene scene({{"q", {.reserve = 50, .quota = "40ms/100ms"}}, {"beside", {.max = 90}}});
  Program program(*scene.scheduler, "q"), beside(*scene.scheduler, "beside");
  beside.works(kSms);
  scene.pass(1, program, kSms);
  EXPECT_EQ(program.client->in_force(), "quota");
  EXPECT_EQ(program.mode(), ipc::Mode::workers) << "its kernels can be stopped";
  EXPECT_FALSE(program.settled());
  EXPECT_TRUE(ipc::load(program.stub->grant[0].flags) & ipc::kReportWork) << "work counts from where it begins";
  EXPECT_GE(program.granted(), 50u);
  scene.pass(98, program, kSms);
  EXPECT_EQ(program.granted(), 0u);
  EXPECT_EQ(beside.granted(), 90u) << "the reserve too is for others meanwhile";
  EXPECT_EQ(scene.scheduler->quota_now("q", scene.now_ns), "quota used up on GPU 0, goes on in 1 ms");
  EXPECT_EQ(scene.scheduler->quota_now("beside", scene.now_ns), std::nullopt);
  scene.pass(3, program, kSms);
  EXPECT_GE(program.granted(), 50u);
  EXPECT_EQ(scene.scheduler->quota_now("q", scene.now_ns), std::nullopt);
  EXPECT_EQ(scene.scheduler->throttled("q", scene.now_ns).times, 1);
}

TEST(QuotasInScheduler, TimeIsThatOfTheWholeGpu) {
  for (const std::int64_t max : {25, 50, 100}) {
    Scene scene({{"q", {.max = max, .quota = "20ms/100ms"}}});
    Program program(*scene.scheduler, "q");
    scene.pass(100, program, kSms);
    EXPECT_NEAR(scene.pass(1000, program, kSms), 200, 4) << max;
    const double throttled_ms =
        std::chrono::duration<double, std::milli>(scene.scheduler->throttled("q", scene.now_ns).time).count();
    EXPECT_NEAR(throttled_ms, 11 * (100 - 20.0 * kSms / static_cast<double>(max)), 25) << max;
  }
}

TEST(QuotasInScheduler, WhoNeedsLessIsNotThrottled) {
  Scene scene({{"q", {.quota = "40ms/100ms"}}});
  Program program(*scene.scheduler, "q");
  EXPECT_NEAR(scene.pass(1000, program, 30), 300, 1);
  EXPECT_EQ(scene.scheduler->throttled("q", scene.now_ns).times, 0);
}

TEST(QuotasInScheduler, HowOftenASliceWasThrottledOutlivesItsQuota) {
  Scene scene({{"q", {.quota = "40ms/100ms"}}});
  Program program(*scene.scheduler, "q");
  scene.pass(500, program, kSms);
  const auto before = scene.scheduler->throttled("q", scene.now_ns);
  ASSERT_GT(before.times, 0);
  scene.set("q", {.quota = "none"});
  EXPECT_EQ(scene.scheduler->throttled("q", scene.now_ns).times, before.times);
  EXPECT_EQ(scene.scheduler->throttled("q", scene.now_ns).time, before.time);
  scene.set("q", {.quota = "40ms/100ms"});
  scene.pass(500, program, kSms);
  EXPECT_GT(scene.scheduler->throttled("q", scene.now_ns).times, before.times);
}

TEST(QuotasInScheduler, ABurstUsesWhatWasLeftBefore) {
  for (const bool burst : {false, true}) {
    Scene scene({{"q", {.quota = "40ms/100ms", .burst = burst ? "40ms" : "none"}}});
    Program program(*scene.scheduler, "q");
    scene.pass(300, program, 0);
    EXPECT_NEAR(scene.pass(99, program, kSms), burst ? 80 : 40, 2);
  }
}

/// It is charged for as long as it runs, and does not begin again before that is paid.
TEST(QuotasInScheduler, AKernelThatCannotBeStoppedIsADebt) {
  Scene scene({{"q", {.quota = "20ms/100ms"}}});
  Program program(*scene.scheduler, "q");
  for (int ms = 0; ms < 70; ++ms) {
    program.runs_original(kSms);
    scene.scheduler->update(scene.now_ns += kMs);
  }
  EXPECT_EQ(program.granted(), 0u);
  program.counts().original = 0;  // it is complete, and the next one waits
  int waited_ms = 0;
  for (; program.granted() == 0 && waited_ms < 1000; ++waited_ms) scene.scheduler->update(scene.now_ns += kMs);
  EXPECT_NEAR(waited_ms, 30 + 200, 5) << "70 ms are more than three periods give";
}

/// What waits behind workers, which have no SMs, does not run.
TEST(QuotasInScheduler, WhatWaitsIsNotCharged) {
  Scene scene({{"q", {.quota = "20ms/100ms"}}});
  Program program(*scene.scheduler, "q");
  program.counts().original = 7;
  EXPECT_NEAR(scene.pass(1000, program, kSms), 200, 4);
}

TEST(QuotasInScheduler, EverySliceAboveIsChargedToo) {
  Scene scene({{"team", {.quota = "30ms/100ms"}}, {"team/a", {.quota = "20ms/100ms"}}, {"team/b", {}}});
  Program a(*scene.scheduler, "team/a");
  EXPECT_NEAR(scene.pass(1000, a, kSms), 200, 4);
  scene.pass(99, a, 0);
  Program b(*scene.scheduler, "team/b");
  EXPECT_NEAR(scene.pass(1000, b, kSms), 300, 5);
  EXPECT_EQ(b.client->in_force(), "quota");
  EXPECT_NE(scene.scheduler->quota_now("team/b", scene.now_ns)->find("quota of team used up"), std::string::npos);
  EXPECT_EQ(scene.scheduler->throttled("team/b", scene.now_ns).times, 0);
}

TEST(QuotasInScheduler, EachGpuHasItsOwn) {
  Scene scene({{"q", {.quota = "40ms/100ms"}}}, {gpu(kSms, 0), gpu(kSms, 1)});
  Program program(*scene.scheduler, "q"), other(*scene.scheduler, "q", {1});
  scene.pass(60, program, kSms);
  EXPECT_EQ(program.granted(), 0u);
  other.works(kSms);
  scene.scheduler->update(scene.now_ns += kMs);
  EXPECT_EQ(other.granted(), kSms);
  EXPECT_EQ(scene.scheduler->throttled_times("q", 0, scene.now_ns), 1);
  EXPECT_EQ(scene.scheduler->throttled_times("q", 1, scene.now_ns), 0);
}

TEST(QuotasInScheduler, OneGpuMayHaveAnotherOne) {
  Scene scene({{"q", {.quota = "40ms/100ms,1:none"}}}, {gpu(kSms, 0), gpu(kSms, 1)});
  Program program(*scene.scheduler, "q"), other(*scene.scheduler, "q", {1});
  scene.pass(100, other, kSms);
  EXPECT_EQ(other.granted(), kSms);
  EXPECT_EQ(other.client->in_force(), "nothing");
  scene.pass(60, program, kSms);
  EXPECT_EQ(program.granted(), 0u);
  EXPECT_EQ(program.client->in_force(), "quota");
  scene.set("q", {.quota = "1:1ms/100ms"});
  EXPECT_EQ(program.granted(), kSms);
  scene.pass(20, other, kSms);
  EXPECT_EQ(other.granted(), 0u);
  EXPECT_EQ(scene.scheduler->throttled("q", scene.now_ns).times, 2) << "what was before counts on";
}

TEST(QuotasInScheduler, AChangeHoldsAtOnceAndForgivesNoDebt) {
  Scene scene({{"q", {.quota = "10ms/1s"}}});
  Program program(*scene.scheduler, "q");
  scene.pass(20, program, kSms);
  EXPECT_EQ(program.granted(), 0u);
  scene.set("q", {.quota = "30ms/1s"});
  EXPECT_GT(program.granted(), 0u);
  EXPECT_NEAR(scene.pass(500, program, kSms), 30, 3);
  scene.set("q", {.quota = "none"});
  EXPECT_EQ(program.granted(), kSms);
  EXPECT_TRUE(is_free(program));
  EXPECT_EQ(scene.scheduler->quota_ns(), UINT64_MAX);
}

TEST(QuotasInScheduler, WhoTakesTurnsHasOneToo) {
  Scene scene({{"q", {.quota = "40ms/100ms"}}});
  scene.scheduler->set_time_sliced(true, scene.now_ns);
  Program program(*scene.scheduler, "q");
  scene.pass(100, program, kSms);
  EXPECT_NEAR(scene.pass(1000, program, kSms), 400, 5);
}

/// Nobody could end their wait.
TEST(QuotasInScheduler, AStoppedDaemonLeavesNobodyThrottled) {
  Scene scene({{"q", {.max = 60, .quota = "1ms/1s"}}, {"q/frozen", {.frozen = "yes"}}, {"beside", {}}});
  Program program(*scene.scheduler, "q"), frozen(*scene.scheduler, "q/frozen"), beside(*scene.scheduler, "beside");
  beside.works(kSms);
  frozen.works(kSms);
  scene.pass(20, program, kSms);
  ASSERT_EQ(program.granted(), 0u);
  const std::uint32_t others = beside.granted();
  scene.scheduler->lift_quotas(scene.now_ns);
  EXPECT_EQ(program.granted(), 60u);
  EXPECT_EQ(frozen.granted(), 0u);
  EXPECT_EQ(beside.granted(), others);
}

/// The next look is when something happens, so a quota is kept to the millisecond although looks come each 5 ms.
TEST(QuotasInScheduler, TheNextLookIsWhenItIsUsedUpOrGoesOn) {
  Scene scene({{"q", {.quota = "40ms/100ms"}}});
  Program program(*scene.scheduler, "q");
  scene.pass(10, program, 50);
  EXPECT_NEAR(static_cast<double>(scene.scheduler->quota_ns()), 1080e6, 2e6);
  scene.pass(80, program, 50);
  EXPECT_EQ(program.granted(), 0u);
  EXPECT_EQ(scene.scheduler->quota_ns(), 1100 * kMs);
}

}  // namespace
}  // namespace gpuctl::daemon::quotas_test
