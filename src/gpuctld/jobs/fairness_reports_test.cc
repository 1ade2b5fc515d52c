// What the launches that clients report say about how well slices are served.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon {
namespace {

void report(FakeJob& job, std::uint64_t issued_ms, std::uint64_t start_ms, std::uint64_t done_ms,
            std::uint32_t flags = ipc::kWholeDevice) {
  const std::uint32_t written = ipc::load(job.stub->records_written);
  ipc::record_at(*job.stub.get(), written) = {.kernel = job.kernel,
                                              .issued_ns = issued_ms * kMs,
                                              .start_ns = start_ms * kMs,
                                              .done_ns = done_ms * kMs,
                                              .evictions = flags,
                                              .total = 132,
                                              .threads = 256,
                                              .per_sm = 1};
  ipc::store(job.stub->records_written, written + 1);
}

TEST(FairnessOfSlices, FollowsFromTheLaunchesOfTheirPrograms) {
  Scheduler scheduler({gpu(132)}, tree_with("rr"));
  FakeJob quick(scheduler, "high"), slow(scheduler, "low/sub");
  report(quick, 1, 1, 11);  // 10 ms alone, and in all
  report(slow, 1, 21, 31);  // 10 ms alone, after 20 ms
  auto figures = scheduler.fairness(40 * kMs);
  ASSERT_EQ(figures.size(), 4u);
  EXPECT_DOUBLE_EQ(figures["high"].applications.antt, 1);
  EXPECT_DOUBLE_EQ(figures["low/sub"].applications.antt, 3);
  EXPECT_DOUBLE_EQ(figures["low"].applications.antt, 3);
  EXPECT_EQ(figures["/"].programs, 2u);
  EXPECT_DOUBLE_EQ(figures["/"].applications.antt, 2);
  EXPECT_DOUBLE_EQ(figures["/"].applications.dntt, 1);
}

TEST(FairnessOfSlices, KeepsThatOfProgramsThatAreGone) {
  Scheduler scheduler({gpu(132)}, tree_with("rr"));
  FakeJob job(scheduler, "low");
  report(job, 1, 1, 11);
  scheduler.remove(*job.client, 20 * kMs);
  EXPECT_EQ(scheduler.fairness(30 * kMs)["low"].programs, 1u);
}

TEST(FairnessOfSlices, TakesAnOlderLaunchThatRunsForThePartOfABurst) {
  Scheduler scheduler({gpu(132)}, tree_with("rr"));
  FakeJob job(scheduler, "low");
  job.head(1 * kMs);  // issued 1 ms
  report(job, 2, 2, 12);
  report(job, 22, 22, 32);
  EXPECT_EQ(scheduler.fairness(40 * kMs)["low"].bursts, 1u);
  job.head(0);
  report(job, 50, 50, 60);
  EXPECT_EQ(scheduler.fairness(70 * kMs)["low"].bursts, 2u);
}

TEST(FairnessOfSlices, LaunchesInOriginalFormAreNoWholeBursts) {
  Scheduler scheduler({gpu(132)}, tree_with("rr"));
  FakeJob job(scheduler, "low");
  report(job, 1, 11, 21, ipc::kOriginalForm);
  const sched::FairnessFigures figures = scheduler.fairness(30 * kMs)["low"];
  EXPECT_EQ(figures.bursts, 0u);
  EXPECT_EQ(figures.launches.count, 1u);
  EXPECT_DOUBLE_EQ(figures.launches.mean, 2);
}

TEST(FairnessOfSlices, LeavesOutTimesThatCannotBe) {
  Scheduler scheduler({gpu(132)}, tree_with("rr"));
  FakeJob liar(scheduler, "low");
  report(liar, 9, 5, 8);    // issued after its end
  report(liar, 1, 51, 60);  // ends in the future
  EXPECT_TRUE(scheduler.fairness(40 * kMs).empty());
  report(liar, 1, 4'000'000, 4'000'010);  // took more than an hour
  EXPECT_TRUE(scheduler.fairness(4'000'020 * kMs).empty());
  report(liar, 4'000'000, 4'000'000, 4'000'010);
  EXPECT_EQ(scheduler.fairness(4'000'020 * kMs)["low"].launches.count, 1u);
}

}  // namespace
}  // namespace gpuctl::daemon
