// Policies for jobs in the daemon: which clients get SMs, and through which steps.
#include <gtest/gtest.h>

#include <boost/json/value.hpp>

#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon {
namespace {

/// So that jobs take turns one after the other.
sched::SliceTree with_equal_weights(const std::string& policy) {
  sched::SliceTree tree = tree_with(policy);
  EXPECT_TRUE(tree.change("low", {.weight = 100}, kRoot));
  return tree;
}

TEST(JobsInScheduler, OneAtATimeAndTheNextWhenTheFirstIsOver) {
  Scheduler scheduler({gpu(132)}, tree_with("fcfs"));
  FakeJob a(scheduler, "low"), b(scheduler, "high");
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
  Scheduler scheduler({gpu(132)}, tree_with("hpf"));
  FakeJob low(scheduler, "low"), high(scheduler, "high");
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

TEST(JobsInScheduler, AsksToBeCalledWhenASliceEnds) {
  Scheduler scheduler({gpu(132)}, with_equal_weights("rr:quantum_ms=2"));
  EXPECT_EQ(scheduler.again_ns(), UINT64_MAX);
  FakeJob a(scheduler, "low"), b(scheduler, "high");
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

/// A program that has done a burst of ten launches of 1 ms, and is in the first of the next one. Returns when that is.
std::uint64_t in_its_second_burst(Scheduler& scheduler, FakeJob& job) {
  std::uint64_t now = kMs;
  for (std::uint64_t launch = 1; launch <= 10; ++launch, now += kMs) {
    job.head(launch);
    ipc::store(ipc::latency_at(*job.stub.get(), 0).counted, static_cast<std::uint32_t>(launch));  // requests
    settle(scheduler, {&job}, now);
  }
  job.head(0);
  settle(scheduler, {&job}, now);
  ipc::store(ipc::latency_at(*job.stub.get(), 0).bursts_ended, std::uint64_t{1});
  job.head(11);
  settle(scheduler, {&job}, now += kMs);
  EXPECT_EQ(job.state(), "running");
  return now;
}

TEST(JobsInScheduler, ABurstOfShortLaunchesIsALongJob) {
  Scheduler scheduler({gpu(132)}, with_equal_weights("srt"));
  FakeJob a(scheduler, "low"), b(scheduler, "high");
  const std::uint64_t now = in_its_second_burst(scheduler, a);
  b.kernel = 8;
  b.head(1, 132 * 5);
  scheduler.update(now + kMs / 2);
  EXPECT_EQ(a.state(), "to-evict") << "its launch takes 1 ms, and nine follow";
  EXPECT_EQ(b.state(), "to-run");
}

TEST(JobsInScheduler, ALaunchWithoutProgressIsNotPaidForByWhatIsBehindIt) {
  Scheduler scheduler({gpu(132)}, with_equal_weights("srt"));
  FakeJob a(scheduler, "low"), b(scheduler, "high");
  std::uint64_t now = in_its_second_burst(scheduler, a);
  for (int i = 0; i < 5; ++i) scheduler.update(now += kMs);
  b.kernel = 8;
  b.head(1, 132 * 7);
  ipc::store(b.stub->head[0].issued_ns, now);
  scheduler.update(now + 1);
  EXPECT_EQ(a.state(), "to-evict") << "nine of 1 ms are still to come";
}

TEST(JobsInScheduler, ASliceBeginsWhenTheWorkersAreThere) {
  Scheduler scheduler({gpu(132)}, with_equal_weights("rr:quantum_ms=2"));
  FakeJob a(scheduler, "low"), b(scheduler, "high");
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
  Scheduler scheduler({gpu(132)}, with_equal_weights("frs"));
  FakeJob a(scheduler, "low"), b(scheduler, "high");
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
  Scheduler scheduler({gpu(132)}, with_equal_weights("rr:quantum_ms=2"));
  FakeJob a(scheduler, "low"), b(scheduler, "high");
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
  Scheduler scheduler({gpu(132)}, tree_with("ffs:max_overhead=0.001"));
  FakeJob a(scheduler, "low"), b(scheduler, "high");
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
  Scheduler scheduler({gpu(132)}, tree_with("hpf:spatial"));
  FakeJob low(scheduler, "low"), high(scheduler, "high");
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

TEST(JobsInScheduler, SpatialYieldGivesExtraSmsWhereItIsAskedFor) {
  Scheduler scheduler({gpu(132)}, tree_with("hpf:spatial:extra=4"));
  FakeJob low(scheduler, "low"), high(scheduler, "high");
  low.head(1, 132 * 100);
  scheduler.update(1 * kMs);
  low.apply();
  high.head(1, 8);
  scheduler.update(2 * kMs);
  EXPECT_EQ(low.granted(), 120u);
  low.apply();
  scheduler.update(3 * kMs);
  EXPECT_EQ(high.granted(), 12u) << "more than it fills";
  EXPECT_EQ(low.granted(), 120u);
  high.head(0);
  scheduler.update(4 * kMs);
  EXPECT_EQ(low.granted(), 132u);
}

TEST(JobsInScheduler, ThePolicyChangesWhileJobsRunAndWaitAndGoes) {
  Scheduler scheduler({gpu(132)}, tree_with("fcfs"));
  FakeJob low(scheduler, "low"), high(scheduler, "high");
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

/// It could not leave its place to the others by running.
TEST(JobsInScheduler, AFrozenProgramHoldsUpNobodyAndComesBack) {
  sched::SliceTree tree = tree_with("fcfs");
  Scheduler scheduler({gpu(132)}, tree);
  FakeJob first(scheduler, "low"), second(scheduler, "high");
  first.head(1);
  scheduler.update(1 * kMs);
  second.head(1);
  scheduler.update(2 * kMs);
  EXPECT_EQ(first.granted(), 132u);
  ASSERT_TRUE(tree.change("low", {.frozen = "yes"}, kRoot));
  scheduler.set_tree(tree, 3 * kMs);
  EXPECT_EQ(first.granted(), 0u);
  first.apply();
  scheduler.update(4 * kMs);
  EXPECT_EQ(second.granted(), 132u);
  second.head(0);
  scheduler.update(5 * kMs);
  EXPECT_EQ(first.granted(), 0u) << "nobody else is there, and it is frozen all the same";
  ASSERT_TRUE(tree.change("low", {.frozen = "no"}, kRoot));
  scheduler.set_tree(tree, 6 * kMs);
  scheduler.update(7 * kMs);
  EXPECT_EQ(first.granted(), 132u);
}

TEST(JobsInScheduler, OnlyTheSubtreeOfItsSliceTakesTurns) {
  sched::SliceTree shared(sched::CapSM{132}, 0);
  ASSERT_TRUE(shared.create("ls", {.reserve = 32, .reserve_mode = "strict"}, kRoot));
  ASSERT_TRUE(shared.create("batch", {.policy = "fcfs"}, kRoot));
  ASSERT_TRUE(shared.create("batch/a", {}, kRoot));
  Scheduler scheduler({gpu(132)}, shared);
  FakeJob ls(scheduler, "ls"), a(scheduler, "batch/a"), b(scheduler, "batch");
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
  Scheduler scheduler({gpu(132)}, tree_with("fcfs"));
  FakeJob opaque(scheduler, "low"), other(scheduler, "high");
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
  Scheduler scheduler({gpu(132)}, tree_with("sjf"));
  FakeJob a(scheduler, "low");
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
  EXPECT_TRUE(restored.wants_names(1000));
  EXPECT_FALSE(restored.from_json({{"version", 2}}));
  EXPECT_EQ(restored.list().size(), 1u) << "nothing half-applied";
  const ipc::Head head{.kernel = 7, .total = 132, .threads = 256, .per_sm = 1};
  EXPECT_EQ(restored.predict(1000, head, 132), scheduler.knowledge().predict(1000, head, 132));
}

TEST(JobsInScheduler, KernelsOfAProgramThatEndsAtOnceHaveNames) {
  Scheduler scheduler({gpu(132)}, tree_with("sjf"));
  FakeJob job(scheduler, "low");
  job.kernel = ipc::kernel_hash("m", "k");
  ended(job, 1, 132, 1000, 3'001'000);
  job.client->report({{.name = "k", .module = "m"}}, 1000);
  scheduler.remove(*job.client, 10);
  ASSERT_EQ(scheduler.knowledge().list().size(), 1u);
  EXPECT_EQ(scheduler.knowledge().list()[0].name, "k");
}

TEST(JobsInScheduler, ARecordSaysTheShapeOfALaunchAndWhatItHad) {
  Scheduler scheduler({gpu(132)}, tree_with("fcfs"));
  FakeJob job(scheduler, "low");
  const int reader = 0;
  scheduler.read_records(&reader, 1);
  job.head(1, 264);
  scheduler.update(10);
  ipc::record_at(*job.stub.get(), 0) = {.kernel = 7,
                                        .issued_ns = 1,
                                        .start_ns = 1000,
                                        .done_ns = 3'001'000,
                                        .total = 264,
                                        .threads = 256,
                                        .per_sm = 2,
                                        .shared = 512,
                                        .input_kib = 3};
  ipc::store(job.stub->records_written, 1u);
  const auto launches = scheduler.read_records(&reader, 3'002'000).launches;
  ASSERT_EQ(launches.size(), 1u);
  const ipc::Launch& launch = launches[0].launch;
  EXPECT_EQ(launch.key, KernelKnowledge::key_of(7));
  EXPECT_EQ(launch.blocks, 264);
  EXPECT_EQ(launch.threads, 256);
  EXPECT_EQ(launch.shared_bytes, 512);
  EXPECT_EQ(launch.input_bytes, 3 * 1024);
  EXPECT_DOUBLE_EQ(launch.sms, 132);
  EXPECT_DOUBLE_EQ(launch.ran_us, 3000);
  EXPECT_FALSE(launch.original);
}

TEST(JobsInScheduler, RecordingIsInForceAtOnceAndAsLongAsThereIsAReader) {
  Scheduler scheduler({gpu(132)}, sched::SliceTree(sched::CapSM{132}, 0));
  FakeJob job(scheduler, "/");
  EXPECT_TRUE(is_free(job));
  const int reader = 0;
  scheduler.read_records(&reader, 2);
  EXPECT_FALSE(is_free(job));
  EXPECT_EQ(ipc::load(job.stub->grant[0].jobs), ipc::kReportJobs);
  EXPECT_EQ(job.client->in_force(), "jobs");
  scheduler.forget_reader(&reader, 3);
  EXPECT_TRUE(is_free(job));
  EXPECT_EQ(ipc::load(job.stub->grant[0].jobs), ipc::kNoJobs);
}

TEST(JobsInScheduler, NothingThatAClientSaysOfItsLaunchesIsBelieved) {
  Scheduler scheduler({gpu(132)}, tree_with("frs"));
  FakeJob liar(scheduler, "low"), other(scheduler, "high");
  ipc::Head& head = liar.stub->head[0];
  head.launch = 1;
  head.total = head.claimed = head.shared = head.input_kib = head.task_ns = 0xffffffff;
  head.threads = head.per_sm = 0xffff;
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

}  // namespace
}  // namespace gpuctl::daemon
