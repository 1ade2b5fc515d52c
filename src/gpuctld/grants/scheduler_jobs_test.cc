// Policies for jobs in the daemon: which clients get SMs, and through which steps.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

sched::SliceTree tree(const std::string& policy) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.change("/", {.policy = policy}, kRoot));
  EXPECT_TRUE(tree.create("high", {.reserve = 8, .reserve_mode = "strict", .priority = 10}, kRoot));
  EXPECT_TRUE(tree.create("low", {.weight = 200}, kRoot));
  EXPECT_TRUE(tree.create("low/sub", {.priority = 50}, kRoot));
  return tree;
}

/// A client whose oldest launch is given, or none (0).
struct Job : FakeProgram {
  using FakeProgram::FakeProgram;
  void head(std::uint64_t launch, std::uint32_t blocks = 132, std::uint32_t task_us = 1000) {
    ipc::Head& head = stub->head[0];
    ipc::store(head.version, head.version + 1);
    head.launch = launch;
    head.kernel = kernel;
    head.issued_ns = launch;
    head.total = blocks;
    head.claimed = 0;
    head.threads = 256;
    head.per_sm = 1;
    head.task_ns = task_us * 1000;
    ipc::store(head.version, head.version + 1);
    demand(launch == 0 ? 0 : std::min(blocks, 132u));
  }
  std::uint64_t kernel = 7;
  std::string_view state() const { return job_state(client->slots()[0]); }
};

TEST(JobsInScheduler, OneAtATimeAndTheNextWhenTheFirstIsOver) {
  Scheduler scheduler({gpu(132)}, tree("fcfs"));
  Job a(scheduler, "low"), b(scheduler, "high");
  a.head(1);
  scheduler.update(10);
  b.head(1);
  scheduler.update(20);
  EXPECT_EQ(a.granted(), 132u);
  EXPECT_EQ(a.state(), "running");
  EXPECT_EQ(b.granted(), 0u) << "reserves below a policy for jobs are not in force";
  EXPECT_EQ(b.state(), "waiting");
  a.head(0);
  scheduler.update(30);
  EXPECT_EQ(a.granted(), 0u);
  EXPECT_EQ(b.granted(), 132u);
  EXPECT_EQ(a.state(), "idle");
}

TEST(JobsInScheduler, AHigherPriorityEvictsAndGetsTheSmsWhenTheyAreLeft) {
  Scheduler scheduler({gpu(132)}, tree("hpf"));
  Job low(scheduler, "low"), high(scheduler, "high");
  low.head(1, 132 * 100);
  scheduler.update(1 * kMs);
  low.apply();
  high.head(1);
  scheduler.update(2 * kMs);
  EXPECT_EQ(low.granted(), 0u);
  EXPECT_EQ(low.state(), "to-evict");
  EXPECT_EQ(high.granted(), 0u) << "nobody said yet that the SMs are left";
  EXPECT_EQ(high.state(), "to-run");
  low.apply();
  scheduler.update(3 * kMs);
  EXPECT_EQ(high.granted(), 132u);
  ipc::store(high.stub->usage[0].holding, 132u);
  scheduler.update(4 * kMs);
  EXPECT_EQ(low.state(), "evicted");
  EXPECT_EQ(high.state(), "running");
  high.head(0);
  scheduler.update(5 * kMs);
  EXPECT_EQ(low.granted(), 132u);
}

/// Nothing but the policy makes a client obey.
sched::SliceTree levels(const std::string& policy) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.change("/", {.policy = policy}, kRoot));
  EXPECT_TRUE(tree.create("high", {.priority = 10}, kRoot));
  EXPECT_TRUE(tree.create("low", {}, kRoot));
  return tree;
}

bool is_free(const Job& job) {
  return (ipc::load(job.stub->grant[0].flags) & ipc::kFree) != 0;
}

TEST(JobsInScheduler, PrioritiesThatDifferAreLeftToTheGpu) {
  for (const char* policy : {"hpf", "hpf:spatial", "piv"}) {
    Scheduler scheduler({gpu(132)}, levels(policy));
    Job low(scheduler, "low"), high(scheduler, "high");
    low.head(1, 132 * 100);
    high.head(1);
    scheduler.update(1 * kMs);
    for (const Job* job : {&low, &high}) {
      EXPECT_TRUE(is_free(*job)) << policy;
      EXPECT_EQ(job->granted(), 132u) << policy;
      EXPECT_EQ(job->state(), "") << policy;
      EXPECT_EQ(ipc::load(job->stub->grant[0].jobs), ipc::kNoJobs) << policy;
    }
  }
}

TEST(JobsInScheduler, EqualsTakeTurnsAndSoDoAllBesideThem) {
  Scheduler scheduler({gpu(132)}, levels("hpf"));
  Job low(scheduler, "low"), high(scheduler, "high");
  {
    Job equal(scheduler, "low");
    low.head(1, 132 * 100);
    scheduler.update(1 * kMs);
    low.apply();
    high.head(1);
    scheduler.update(2 * kMs);
    for (const Job* job : {&low, &high, &equal}) EXPECT_FALSE(is_free(*job));
    EXPECT_EQ(low.granted(), 0u);
    EXPECT_EQ(low.state(), "to-evict");
    scheduler.remove(*equal.client, 3 * kMs);
  }
  EXPECT_TRUE(is_free(low));
  EXPECT_EQ(low.granted(), 132u);
  EXPECT_EQ(low.state(), "");
}

TEST(JobsInScheduler, APriorityThatAProgramGaveUpMakesItAnEqual) {
  Scheduler scheduler({gpu(132)}, levels("hpf"));
  Job low(scheduler, "low"), high(scheduler, "high");
  EXPECT_TRUE(is_free(low));
  scheduler.set_hint(*high.client, 0, 1 * kMs);
  EXPECT_FALSE(is_free(low));
  EXPECT_EQ(high.state(), "idle");
}

TEST(JobsInScheduler, WhatProtectsFromStarvingIsNotLeftToTheGpu) {
  Scheduler scheduler({gpu(132)}, levels("hpf:protect_ms=50"));
  Job low(scheduler, "low"), high(scheduler, "high");
  EXPECT_FALSE(is_free(low));
}

TEST(JobsInScheduler, NorIsWhatMoreLevelsWouldBeNeededFor) {
  sched::SliceTree tree = levels("hpf");
  for (std::int32_t priority = 1; priority <= 4; ++priority)
    EXPECT_TRUE(tree.create("more" + std::to_string(priority), {.priority = priority}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  Job low(scheduler, "low"), high(scheduler, "high");
  EXPECT_FALSE(is_free(low)) << "six priorities, and five levels";
}

TEST(JobsInScheduler, NorWhereProgramsTakeTurnsOnTheGpu) {
  Gpu hardware = gpu(132);
  hardware.software = false;
  Scheduler scheduler({hardware}, levels("hpf"));
  Job low(scheduler, "low"), high(scheduler, "high");
  EXPECT_TRUE(is_free(low));
  scheduler.set_time_sliced(true, false, 1 * kMs);
  EXPECT_FALSE(is_free(low)) << "there is no priority between contexts that are never there together";
}

TEST(JobsInScheduler, APriorityIsBoundedByTheSlicesAbove) {
  Scheduler scheduler({gpu(132)}, tree("hpf"));
  Job high(scheduler, "high"), sub(scheduler, "low/sub");
  high.head(1, 132 * 100);
  scheduler.update(1 * kMs);
  sub.head(1);
  scheduler.update(2 * kMs);
  EXPECT_EQ(high.granted(), 132u) << "low gives its subtree no more than its own priority, 0";
}

TEST(JobsInScheduler, AsksToBeCalledWhenASliceEnds) {
  Scheduler scheduler({gpu(132)}, tree("rr:quantum_ms=2"));
  EXPECT_EQ(scheduler.again_ns(), UINT64_MAX);
  Job a(scheduler, "low"), b(scheduler, "high");
  a.head(1, 132 * 100);
  scheduler.update(10 * kMs);
  b.head(1, 132 * 100);
  scheduler.update(11 * kMs);
  EXPECT_EQ(scheduler.again_ns(), 12 * kMs);
  EXPECT_EQ(ipc::load(a.stub->grant[0].jobs), ipc::kReportEachJob);
  a.apply();
  scheduler.update(12 * kMs);
  EXPECT_EQ(a.state(), "to-evict");
  a.apply();
  scheduler.update(12 * kMs + 1);
  EXPECT_EQ(b.granted(), 132u);
}

TEST(JobsInScheduler, ASliceBeginsWhenTheWorkersAreThere) {
  Scheduler scheduler({gpu(132)}, tree("rr:quantum_ms=2"));
  Job a(scheduler, "low"), b(scheduler, "high");
  a.head(1, 132 * 100);
  scheduler.update(10 * kMs);
  b.head(1, 132 * 100);
  scheduler.update(11 * kMs);
  scheduler.update(12 * kMs);
  a.apply();
  scheduler.update(12 * kMs + 1);
  ASSERT_EQ(b.granted(), 132u);
  scheduler.update(12 * kMs + 1000);
  EXPECT_EQ(b.state(), "to-run") << "its client has only been told";
  ipc::store(b.stub->usage[0].holding, 66u);
  scheduler.update(12 * kMs + 100'000);
  EXPECT_EQ(b.state(), "running");
  EXPECT_EQ(scheduler.again_ns(), 14 * kMs + 100'000);
}

TEST(JobsInScheduler, APolicyIsNotAskedWheneverSomebodyLooks) {
  Scheduler scheduler({gpu(132)}, tree("frs"));
  Job a(scheduler, "low"), b(scheduler, "high");
  a.head(1, 132 * 100);
  ipc::store(a.stub->head[0].issued_ns, 10 * kMs);
  scheduler.update(10 * kMs);
  b.head(1, 132 * 100);
  ipc::store(b.stub->head[0].issued_ns, 11 * kMs);
  scheduler.update(11 * kMs);
  EXPECT_EQ(scheduler.again_ns(), 12 * kMs) << "the least quantum";
  scheduler.update(11 * kMs + 500'000);
  EXPECT_EQ(a.granted(), 132u) << "b is the slower one now, but this is a's quantum";
  EXPECT_EQ(scheduler.again_ns(), 12 * kMs);
  scheduler.update(12 * kMs);
  EXPECT_EQ(a.state(), "to-evict");
}

TEST(JobsInScheduler, WhoDoesNotSayThatItsWorkersAreThereHasItsSliceAllTheSame) {
  Scheduler scheduler({gpu(132)}, tree("rr:quantum_ms=2"));
  Job a(scheduler, "low"), b(scheduler, "high");
  a.head(1, 132 * 100);
  scheduler.update(10 * kMs);
  b.head(1, 132 * 100);
  scheduler.update(12 * kMs);
  a.apply();
  scheduler.update(12 * kMs + 1);
  ASSERT_EQ(b.granted(), 132u);
  EXPECT_LE(scheduler.again_ns(), 13 * kMs + 1);
  scheduler.update(12 * kMs + 2);
  scheduler.update(13 * kMs + 2);
  EXPECT_EQ(b.state(), "running");
  EXPECT_EQ(scheduler.again_ns(), 15 * kMs + 2);
}

TEST(JobsInScheduler, TheNextLaunchOfAClientGoesOnWithItsGrant) {
  Scheduler scheduler({gpu(132)}, tree("ffs:max_overhead=0.001"));
  Job a(scheduler, "low"), b(scheduler, "high");
  a.head(1, 132 * 100);
  scheduler.update(1 * kMs);
  b.head(1, 132 * 100);
  scheduler.update(2 * kMs);
  const std::uint32_t epoch = a.epoch();
  a.head(2, 132 * 100);
  scheduler.update(2 * kMs + 1000);
  EXPECT_EQ(a.granted(), 132u);
  EXPECT_EQ(a.epoch(), epoch);
  EXPECT_EQ(a.state(), "running");
}

TEST(JobsInScheduler, SpatialYieldGivesOnlyWhatIsFilled) {
  Scheduler scheduler({gpu(132)}, tree("hpf:spatial"));
  Job low(scheduler, "low"), high(scheduler, "high");
  low.head(1, 132 * 100);
  scheduler.update(1 * kMs);
  low.apply();
  high.head(1, 8);
  scheduler.update(2 * kMs);
  EXPECT_EQ(low.granted(), 124u);
  low.apply();
  scheduler.update(3 * kMs);
  EXPECT_EQ(high.granted(), 8u);
}

TEST(JobsInScheduler, ThePolicyChangesWhileJobsRunAndWaitAndGoes) {
  Scheduler scheduler({gpu(132)}, tree("fcfs"));
  Job low(scheduler, "low"), high(scheduler, "high");
  low.head(1, 132 * 100);
  scheduler.update(1 * kMs);
  high.head(1, 132 * 100);
  scheduler.update(2 * kMs);
  EXPECT_EQ(high.granted(), 0u);
  sched::SliceTree changed = scheduler.tree();
  ASSERT_TRUE(changed.change("/", {.policy = "piv"}, kRoot));
  scheduler.set_tree(changed, 3 * kMs);
  low.apply();
  scheduler.update(4 * kMs);
  EXPECT_EQ(high.granted(), 132u);
  ASSERT_TRUE(changed.change("/", {.policy = "share"}, kRoot));
  scheduler.set_tree(changed, 5 * kMs);
  high.apply();
  scheduler.update(6 * kMs);
  EXPECT_GT(low.granted(), 0u);
  EXPECT_GT(high.granted(), 0u);
  EXPECT_EQ(ipc::load(low.stub->grant[0].jobs), ipc::kNoJobs);
  EXPECT_EQ(low.state(), "");
}

TEST(JobsInScheduler, OnlyTheSubtreeOfItsSliceTakesTurns) {
  sched::SliceTree shared(sched::CapSM{132}, 0);
  ASSERT_TRUE(shared.create("ls", {.reserve = 32, .reserve_mode = "strict"}, kRoot));
  ASSERT_TRUE(shared.create("batch", {.policy = "fcfs"}, kRoot));
  ASSERT_TRUE(shared.create("batch/a", {}, kRoot));
  Scheduler scheduler({gpu(132)}, shared);
  Job ls(scheduler, "ls"), a(scheduler, "batch/a"), b(scheduler, "batch");
  a.head(1);
  scheduler.update(1);
  b.head(1);
  scheduler.update(2);
  EXPECT_EQ(a.granted(), 100u) << "all but the reserve of ls";
  EXPECT_EQ(b.granted(), 0u);
  EXPECT_EQ(ls.granted(), 132u) << "nothing is in force for it";
  scheduler.remove(*a.client, 3);
  EXPECT_EQ(b.granted(), 100u);
}

TEST(JobsInScheduler, DemandWithoutALaunchIsAJobToo) {
  Scheduler scheduler({gpu(132)}, tree("fcfs"));
  Job opaque(scheduler, "low"), other(scheduler, "high");
  opaque.demand(50);
  scheduler.update(1);
  other.head(1);
  scheduler.update(2);
  EXPECT_EQ(opaque.granted(), 132u);
  opaque.demand(0);
  scheduler.update(3);
  EXPECT_EQ(other.granted(), 132u);
}

TEST(JobsInScheduler, LearnsFromLaunchesThatEnded) {
  Scheduler scheduler({gpu(132)}, tree("sjf"));
  Job a(scheduler, "low");
  for (std::uint32_t i = 0; i < 20; ++i) {
    ipc::record_at(*a.stub.get(), i) = {.kernel = 7,
                                        .issued_ns = 1,
                                        .start_ns = 1000,
                                        .done_ns = 3001000,
                                        .evictions = ipc::kWholeDevice,
                                        .total = 132,
                                        .threads = 256,
                                        .per_sm = 1};
    ipc::store(a.stub->records_written, i + 1);
    scheduler.update(10 + i);
  }
  EXPECT_EQ(ipc::load(a.stub->records_read), 20u);
  const auto known = scheduler.knowledge().list();
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].launches, 20);
  EXPECT_NEAR(known[0].observed_us, 3000, 1);
  EXPECT_NEAR(known[0].predicted_us, 3000, 30);

  KernelKnowledge restored;
  const auto loaded = restored.from_json(scheduler.knowledge().to_json());
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(restored.list().size(), 1u);
  EXPECT_EQ(restored.list()[0].launches, 20);
  EXPECT_TRUE(restored.wants_names());
  EXPECT_FALSE(restored.from_json({{"version", 2}}));
  EXPECT_EQ(restored.list().size(), 1u) << "nothing half-applied";
  const ipc::Head head{.kernel = 7, .total = 132, .threads = 256, .per_sm = 1};
  EXPECT_EQ(restored.predict(head, 132), scheduler.knowledge().predict(head, 132));
}

TEST(JobsInScheduler, NothingThatAClientSaysOfItsLaunchesIsBelieved) {
  Scheduler scheduler({gpu(132)}, tree("frs"));
  Job liar(scheduler, "low"), other(scheduler, "high");
  ipc::Head& head = liar.stub->head[0];
  head.launch = 1;
  head.total = head.claimed = head.threads = head.shared = head.per_sm = head.task_ns = 0xffffffff;
  head.issued_ns = ~0ull;
  liar.demand(132);
  liar.stub->records_written = 0x7fffffff;
  other.head(1);
  scheduler.update(1 * kMs);
  head.version = 1;  // for ever being written
  for (std::uint64_t ms = 2; ms < 100; ++ms) {
    liar.apply();
    other.apply();
    scheduler.update(ms * kMs);
    ASSERT_LE(liar.granted() + other.granted(), 132u);
  }
}

/// Says that a launch of the client's kernel ended.
void ended(Job& job, std::uint64_t launch, std::uint32_t blocks, std::uint64_t start_ns, std::uint64_t done_ns) {
  const std::uint32_t written = ipc::load(job.stub->records_written);
  ipc::record_at(*job.stub.get(), written) = {.kernel = job.kernel,
                                              .issued_ns = launch,
                                              .start_ns = start_ns,
                                              .done_ns = done_ns,
                                              .total = blocks,
                                              .threads = 256,
                                              .per_sm = 1};
  ipc::store(job.stub->records_written, written + 1);
}

/// Updates until every client has what was decided.
void settle(Scheduler& scheduler, std::initializer_list<Job*> jobs, std::uint64_t now_ns) {
  for (int i = 0; i < 4; ++i) {
    for (Job* job : jobs) {
      job->apply();
      ipc::store(job->stub->usage[0].holding, job->granted());
    }
    scheduler.update(now_ns + static_cast<std::uint64_t>(i));
  }
}

TEST(SimInScheduler, JobsRunSideBySideAndWhoIsAloneHasAll) {
  Scheduler scheduler({gpu(132)}, tree("sim"));
  Job a(scheduler, "low"), b(scheduler, "high");
  a.head(1, 1320);
  scheduler.update(1 * kMs);
  EXPECT_EQ(a.granted(), 132u);
  a.apply();
  b.head(1, 1320);
  scheduler.update(1 * kMs + 1000);
  EXPECT_EQ(a.granted(), 66u) << "nothing is known of either: both scale";
  EXPECT_EQ(b.granted(), 0u) << "nobody said yet that the SMs are left";
  settle(scheduler, {&a, &b}, 1 * kMs + 2000);
  EXPECT_EQ(b.granted(), 66u);
  EXPECT_EQ(a.state(), "running");
  EXPECT_EQ(b.state(), "running");
  b.head(0);
  scheduler.update(2 * kMs);
  EXPECT_EQ(a.granted(), 132u);
  EXPECT_EQ(b.granted(), 0u);
}

TEST(SimInScheduler, LearnsWhatAKernelCanUseAndGivesTheRestToOthers) {
  Scheduler scheduler({gpu(132)}, tree("sim:refine_ms=0:floor=0"));
  Job flat(scheduler, "low"), other(scheduler, "high");
  other.kernel = 8;
  flat.head(1, 1320);
  settle(scheduler, {&flat}, 1 * kMs);
  ended(flat, 1, 1320, 1 * kMs + 1000, 11 * kMs);  // with 132 SMs
  flat.head(0);
  scheduler.update(11 * kMs);
  other.head(1, 13200);  // 100 ms with all SMs, against 10
  settle(scheduler, {&flat, &other}, 12 * kMs);
  flat.head(2, 1320);
  settle(scheduler, {&flat, &other}, 12 * kMs + 1000);
  const std::uint32_t before = flat.granted();
  EXPECT_GE(before, 10u);
  EXPECT_LE(before, 14u);
  ended(flat, 2, 1320, 12 * kMs + 2000, 22 * kMs);  // with a tenth of them, no slower
  flat.head(3, 1320);
  settle(scheduler, {&flat, &other}, 22 * kMs);
  EXPECT_LT(flat.granted(), before);
  EXPECT_EQ(flat.granted() + other.granted(), 132u);
  ASSERT_EQ(scheduler.knowledge().list().size(), 1u);
  ASSERT_EQ(scheduler.knowledge().list()[0].curve.size(), 1u) << "132 are of no more use";
  EXPECT_EQ(scheduler.knowledge().list()[0].curve[0].sms, before);
}

TEST(SimInScheduler, NoSmIsIdleThatSomebodyMightUse) {
  Scheduler scheduler({gpu(132)}, tree("sim:refine_ms=0:floor=0"));
  Job a(scheduler, "low"), b(scheduler, "high");
  a.head(1, 1320);
  settle(scheduler, {&a}, 1 * kMs);
  ended(a, 1, 1320, 1 * kMs + 1000, 11 * kMs);
  b.kernel = 8;
  b.head(1, 13200);
  a.head(2, 1320);
  settle(scheduler, {&a, &b}, 11 * kMs + 1000);
  ended(a, 2, 1320, 11 * kMs + 2000, 21 * kMs);  // as with 132
  ASSERT_LT(a.granted(), 20u);
  a.head(3, 1320);
  b.kernel = 7;
  b.head(2, 1320);  // of the same kernel
  settle(scheduler, {&a, &b}, 21 * kMs);
  const std::uint32_t of_use = static_cast<std::uint32_t>(scheduler.knowledge().list()[0].curve.back().sms);
  ASSERT_LT(of_use, 20u);
  EXPECT_EQ(a.granted() + b.granted(), 132u);
}

TEST(SimInScheduler, ALaunchBesideAnotherOfItsClientIsNoPointOfACurve) {
  Scheduler scheduler({gpu(132)}, tree("sim"));
  Job a(scheduler, "low");
  a.head(5, 1320);
  settle(scheduler, {&a}, 1 * kMs);
  ended(a, 6, 1320, 1 * kMs + 1000, 11 * kMs);  // launch 5 still runs
  scheduler.update(12 * kMs);
  EXPECT_TRUE(scheduler.knowledge().list().empty() || scheduler.knowledge().list()[0].curve.empty());
  ended(a, 5, 1320, 1 * kMs + 1000, 12 * kMs);  // and ended 1 ms after
  a.head(0);
  scheduler.update(13 * kMs);
  EXPECT_TRUE(scheduler.knowledge().list().empty() || scheduler.knowledge().list()[0].curve.empty());
  ended(a, 7, 1320, 13 * kMs, 23 * kMs);
  scheduler.update(24 * kMs);
  ASSERT_EQ(scheduler.knowledge().list().size(), 1u);
  EXPECT_EQ(scheduler.knowledge().list()[0].curve.size(), 1u);
}

TEST(SimInScheduler, WhenAllIsClaimedTheRestIsForOthers) {
  Scheduler scheduler({gpu(132)}, tree("sim"));
  Job a(scheduler, "low"), b(scheduler, "high");
  a.head(1, 1320);
  b.head(1, 1320);
  settle(scheduler, {&a, &b}, 1 * kMs);
  EXPECT_EQ(a.granted(), 66u);
  EXPECT_EQ(b.granted(), 66u);
  ipc::store(b.stub->usage[0].outstanding, 2u);
  b.stub->head[0].claimed = 1320;
  settle(scheduler, {&a, &b}, 2 * kMs);
  EXPECT_GT(b.granted(), 0u) << "another launch of b waits behind this one";
  ipc::store(b.stub->usage[0].outstanding, 1u);
  b.head(2, 1320);
  settle(scheduler, {&a, &b}, 3 * kMs);
  const std::uint32_t held = b.granted();
  EXPECT_GT(held, 0u);
  b.stub->head[0].claimed = 1320;
  settle(scheduler, {&a, &b}, 4 * kMs);
  EXPECT_EQ(b.granted(), 0u);
  EXPECT_EQ(a.granted(), 132u);
  // What is taken away then is not what it ran with.
  ended(b, 2, 1320, 3 * kMs + 1000, 9 * kMs);
  b.head(0);
  scheduler.update(10 * kMs);
  ASSERT_EQ(scheduler.knowledge().list().size(), 1u);
  ASSERT_EQ(scheduler.knowledge().list()[0].curve.size(), 1u);
  EXPECT_EQ(scheduler.knowledge().list()[0].curve[0].sms, held);
  EXPECT_NEAR(scheduler.knowledge().list()[0].curve[0].block_task_us, 5999.0 / 1320, 0.1);
}

TEST(SimInScheduler, ALaunchThatDoesNotGetOnIsNotTakenForOneThatIsNearlyOver) {
  Scheduler scheduler({gpu(132)}, tree("sim:refine_ms=5"));
  Job stuck(scheduler, "low"), other(scheduler, "high");
  stuck.head(1, 1320);  // 10 ms each, and nothing is claimed for a long time
  std::uint64_t launch = 0, sum = 0;
  for (std::uint64_t ms = 1; ms < 1000; ms += 5) {
    other.head(++launch, 1320);
    settle(scheduler, {&stuck, &other}, ms * kMs);
    sum += ms < 500 ? 0 : stuck.granted();
  }
  EXPECT_GE(sum / 100, 30u) << "5 ms in the mean beside 10 ms";
  stuck.stub->head[0].claimed = 1320;  // now it is
  ipc::store(stuck.stub->usage[0].outstanding, 2u);
  other.head(++launch, 1320);
  settle(scheduler, {&stuck, &other}, 1000 * kMs);
  EXPECT_LT(stuck.granted(), 20u);
}

TEST(SimInScheduler, AnOpaqueKernelIsOneUnitThatGoesOnAsLongAsItHasGoneOn) {
  Scheduler scheduler({gpu(132)}, tree("sim:refine_ms=5:floor=0"));
  Job opaque(scheduler, "low"), other(scheduler, "high");
  opaque.demand(132);
  other.head(1, 13200);  // 100 ms
  scheduler.update(1 * kMs);
  const std::uint32_t first = opaque.granted();
  EXPECT_LT(first, 10u) << "1 ms is what is assumed at first";
  for (std::uint64_t ms = 2; ms < 1000; ms += 5) {
    opaque.apply();
    other.apply();
    scheduler.update(ms * kMs);
  }
  EXPECT_GT(opaque.granted(), first);
  EXPECT_GT(other.granted(), 0u);
  EXPECT_LE(opaque.granted() + other.granted(), 132u);
}

}  // namespace
}  // namespace gpuctl::daemon
