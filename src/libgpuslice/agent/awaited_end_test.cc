#include "libgpuslice/agent/awaited_end.h"

#include <gtest/gtest.h>

#include "ipc/stub_map.h"
#include "libgpuslice/testing/fake_driver.h"

namespace gpuslice {
namespace {

namespace ipc = gpuctl::ipc;

constexpr std::uint32_t kSms = 100;

class AwaitedEndTest : public testing::Test {
 protected:
  AwaitedEndTest() { kernel_.instance.task_ns = 20'000; }
  /// A launch that takes so many milliseconds on all SMs, with so many workers.
  Launch& add(std::uint32_t ms, std::uint32_t launched) {
    auto launch = std::make_unique<Launch>();
    launch->instance = &kernel_.instance;
    launch->slot = slots_.take().value();
    launch->number = stream_.outstanding.size() + 1;
    launch->per_sm = 2;
    launch->args.total = ms * 50 * kSms * launch->per_sm;
    launch->launched = launched;
    stream_.outstanding.push_back(std::move(launch));
    return *stream_.outstanding.back();
  }
  Launch& add_running(std::uint32_t ms, std::uint32_t launched) {
    Launch& launch = add(ms, launched);
    ipc::store(slots_.host(launch.slot).started, 1u);
    return launch;
  }
  /// The number of the launch whose end is awaited, and in how many milliseconds that is.
  using Found = std::pair<std::uint64_t, std::uint64_t>;
  Found awaited(std::uint32_t jobs, std::uint32_t sms = kSms) const {
    const AwaitedEnd end = awaited_end(stream_, slots_, sms, jobs);
    return {end.launch, (end.left_ns + 500'000) / 1'000'000};
  }

  FakeKernel kernel_;
  Slots slots_ = fake_slots();
  Stream stream_;
};

constexpr std::uint32_t kAll = 2 * kSms, kHolderAlone = 1;
using Found = std::pair<std::uint64_t, std::uint64_t>;

TEST_F(AwaitedEndTest, OfALaunchAloneMattersWhereJobsAreReported) {
  Launch& launch = add_running(4, kAll);
  EXPECT_EQ(awaited(ipc::kNoJobs), Found(0, 0));
  EXPECT_EQ(awaited(ipc::kReportJobs), Found(1, 4));
  ipc::store(slots_.host(launch.slot).progress, launch.args.total / 4);
  EXPECT_EQ(awaited(ipc::kReportEachJob), Found(1, 3));
  EXPECT_EQ(awaited(ipc::kReportEachJob, kSms / 2), Found(1, 6));
  EXPECT_EQ(awaited(ipc::kReportEachJob, 0), Found(0, 0));
}

TEST_F(AwaitedEndTest, IsThatOfAllLaunchesWhereNobodyWaits) {
  add_running(1, kAll);
  add(3, kAll);
  EXPECT_EQ(awaited(ipc::kNoJobs), Found(0, 0));
  EXPECT_EQ(awaited(ipc::kReportJobs), Found(2, 4));
  EXPECT_EQ(awaited(ipc::kReportEachJob), Found(1, 1));
  add(1, kAll);
  EXPECT_EQ(awaited(ipc::kReportJobs), Found(0, 0)) << "far behind others";
  EXPECT_EQ(awaited(ipc::kReportEachJob), Found(1, 1));
}

TEST_F(AwaitedEndTest, IsThatOfTheFirstLaunchWhereTheNextHasTooFewWorkers) {
  add_running(4, kAll);
  add(2, kHolderAlone);
  EXPECT_EQ(awaited(ipc::kNoJobs), Found(1, 4));
  EXPECT_EQ(awaited(ipc::kReportJobs), Found(1, 4));
  EXPECT_EQ(awaited(ipc::kNoJobs, 0), Found(0, 0)) << "nothing is allowed, so none would be added";
}

TEST_F(AwaitedEndTest, AFewWorkersMayBeMissing) {
  add_running(4, kAll);
  Launch& next = add(2, kAll - kAll / 16 + 1);
  EXPECT_EQ(awaited(ipc::kNoJobs), Found(0, 0));
  next.launched = kAll / 2;
  EXPECT_EQ(awaited(ipc::kNoJobs), Found(1, 4));
  next.chunk = next.args.total / (kAll / 2);
  EXPECT_EQ(awaited(ipc::kNoJobs), Found(0, 0)) << "it has no work for more";
}

TEST_F(AwaitedEndTest, NoEndIsAwaitedBeforeTheLaunchRuns) {
  add(4, kHolderAlone);
  EXPECT_EQ(awaited(ipc::kReportEachJob), Found(0, 0));
}

}  // namespace
}  // namespace gpuslice
