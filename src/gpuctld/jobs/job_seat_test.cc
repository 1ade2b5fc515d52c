// Policies for jobs with the option `streams`: each stream of a client is a job, and the client is told which has its
// turn.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint32_t kLong = 132 * 100;  ///< blocks: 100 ms with all SMs

/// A client whose streams have work: as much as the GPU has.
struct WithStreams : FakeJob {
  WithStreams(Scheduler& scheduler, const std::string& slice) : FakeJob(scheduler, slice) { head(1, kLong); }
};

TEST(StreamsInScheduler, TheGreaterLevelHasTheTurnAndTheClientKeepsItsGrant) {
  Scheduler scheduler({gpu(132)}, tree_with("hpf:streams"));
  WithStreams program(scheduler, "low");
  program.stream_head(0, 1, 0, kLong);
  settle(scheduler, {&program}, 1 * kMs);
  EXPECT_EQ(program.turns(), 1u);
  program.stream_head(3, 2, 5, kLong);
  const std::uint32_t epoch = program.epoch();
  settle(scheduler, {&program}, 2 * kMs);
  EXPECT_EQ(program.turns(), 1u << 3);
  EXPECT_EQ(program.granted(), 132u) << "the client does not leave for one of its own streams";
  EXPECT_GT(program.epoch(), epoch) << "the client must be woken";
  const auto& jobs = program.client->slots()[0].stream_jobs;
  const JobQueue& queue = *program.client->slots()[0].queue;
  EXPECT_EQ(queue.state(jobs[0]), "evicted");
  EXPECT_EQ(queue.state(jobs[3]), "running");
  EXPECT_EQ(program.state(), "running");
  program.stream_head(3, 0);
  settle(scheduler, {&program}, 5 * kMs);
  EXPECT_EQ(program.turns(), 1u);
}

TEST(StreamsInScheduler, TheShortestStreamOfAllProgramsGoesFirst) {
  Scheduler scheduler({gpu(132)}, tree_with("srt:streams"));
  WithStreams one(scheduler, "low"), other(scheduler, "high");
  one.stream_head(0, 1, 0, kLong);
  other.stream_head(0, 1, 0, kLong / 2);
  settle(scheduler, {&one, &other}, 1 * kMs);
  EXPECT_EQ(other.granted(), 132u);
  EXPECT_EQ(one.granted(), 0u);
  EXPECT_EQ(one.turns(), 0u);
  one.stream_head(1, 2, 0, kLong / 10);
  settle(scheduler, {&one, &other}, 2 * kMs);
  EXPECT_EQ(one.granted(), 132u);
  EXPECT_EQ(one.turns(), 2u) << "its other stream stays behind that of the other program";
  one.stream_head(1, 0);
  settle(scheduler, {&one, &other}, 12 * kMs);
  EXPECT_EQ(other.granted(), 132u);
}

TEST(StreamsInScheduler, TheSlicesPriorityComesBeforeTheStreams) {
  Scheduler scheduler({gpu(132)}, tree_with("hpf:streams"));
  WithStreams low(scheduler, "low"), high(scheduler, "high");
  low.stream_head(0, 1, 100, kLong);
  high.stream_head(0, 1, -100, kLong);
  settle(scheduler, {&low, &high}, 1 * kMs);
  EXPECT_EQ(high.granted(), 132u);
  EXPECT_EQ(low.granted(), 0u);
}

TEST(StreamsInScheduler, AStreamsLevelPutsNoProgramBeforeAnotherOfEqualPriority) {
  Scheduler scheduler({gpu(132)}, tree_with("hpf:streams"));
  WithStreams other(scheduler, "low"), program(scheduler, "low");
  other.stream_head(0, 1, 0, kLong);
  settle(scheduler, {&program, &other}, 1 * kMs);
  program.stream_head(0, 1, 1000, 2 * kLong);
  program.stream_head(1, 2, 0, kLong / 10);
  settle(scheduler, {&program, &other}, 2 * kMs);
  EXPECT_EQ(other.granted(), 132u) << "its first stream has more to do, and the short one comes behind that";
  other.stream_head(0, 0);
  other.head(0);
  settle(scheduler, {&program, &other}, 3 * kMs);
  EXPECT_EQ(program.turns(), 1u);
}

TEST(StreamsInScheduler, StreamsSideBySideShareTheGrant) {
  Scheduler scheduler({gpu(132)}, tree_with("hpf:spatial:streams"));
  WithStreams program(scheduler, "low"), other(scheduler, "low");
  other.stream_head(0, 1, 0, kLong);
  settle(scheduler, {&program, &other}, 1 * kMs);
  program.stream_head(0, 1, 1, 20);
  program.stream_head(1, 2, 1, 30);
  settle(scheduler, {&program, &other}, 2 * kMs);
  EXPECT_EQ(program.granted(), 50u);
  EXPECT_EQ(program.turns(), 3u);
  EXPECT_EQ(other.granted(), 82u);
}

TEST(StreamsInScheduler, AClientThatReportsNoStreamIsOneJob) {
  Scheduler scheduler({gpu(132)}, tree_with("hpf:streams"));
  WithStreams old(scheduler, "low");
  settle(scheduler, {&old}, 1 * kMs);
  EXPECT_EQ(old.granted(), 132u);
  EXPECT_EQ(old.state(), "running");
  EXPECT_EQ(old.turns(), 0u) << "no stream is held";
  FakeJob high(scheduler, "high");
  high.head(1);
  settle(scheduler, {&old, &high}, 2 * kMs);
  EXPECT_EQ(high.granted(), 132u);
  EXPECT_EQ(old.state(), "evicted");
}

TEST(StreamsInScheduler, AnotherPolicyMakesEachClientOneJobAgain) {
  Scheduler scheduler({gpu(132)}, tree_with("hpf:streams"));
  WithStreams program(scheduler, "low");
  program.stream_head(0, 1, 0, kLong);
  program.stream_head(1, 2, 1, kLong);
  settle(scheduler, {&program}, 1 * kMs);
  EXPECT_EQ(ipc::load(program.stub->grant[0].jobs) & ipc::kReportMask, ipc::kReportEachJob);
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("/", {.policy = "hpf"}, kRoot));
  scheduler.set_tree(std::move(tree), 2 * kMs);
  settle(scheduler, {&program}, 3 * kMs);
  EXPECT_EQ(ipc::load(program.stub->grant[0].jobs), ipc::kNoJobs) << "alone, and so left to the GPU";
  EXPECT_EQ(program.granted(), 132u);
}

TEST(StreamsInScheduler, DifferentPrioritiesAreNotLeftToTheGpu) {
  Scheduler scheduler({gpu(132)}, tree_with("hpf:streams"));
  WithStreams low(scheduler, "low"), high(scheduler, "high");
  settle(scheduler, {&low, &high}, 1 * kMs);
  EXPECT_EQ(low.state(), "evicted");
  EXPECT_EQ(high.state(), "running");
}

TEST(StreamsInScheduler, AClientsPartDoesNotGrowWithItsStreams) {
  for (const char* policy : {"ffs:max_overhead=0.5:streams", "rr:streams", "cfs:streams", "dprr:streams"}) {
    Scheduler scheduler({gpu(132)}, tree_with(policy));
    WithStreams many(scheduler, "low"), one(scheduler, "low");
    for (std::uint32_t place = 0; place < 4; ++place) many.stream_head(place, place + 1, 0, 10'000 * kLong);
    one.stream_head(0, 1, 0, 10'000 * kLong);
    std::uint32_t had = 0;
    constexpr int kLooks = 4000;
    for (int i = 1; i <= kLooks; ++i) {
      settle(scheduler, {&many, &one}, static_cast<std::uint64_t>(i) * kMs / 10);
      had += one.granted() > 0;
    }
    EXPECT_NEAR(had, kLooks / 2, kLooks / 10) << policy;
  }
}

}  // namespace
}  // namespace gpuctl::daemon
