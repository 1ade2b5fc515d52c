#include "libgpuslice/agent/launch_times.h"

#include <gtest/gtest.h>

#include "base/sm_range.h"

namespace gpuslice::launch_times_test {
namespace {

using gpuctl::kNoLimit;
using gpuctl::pack_range;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::int64_t kOffset = 5'000'000'000;  ///< the host's clock minus the GPU's
constexpr std::uint64_t kIssued = 100 * kMs + kOffset;
constexpr std::uint64_t kStart = 100 * kMs, kDone = 110 * kMs;  ///< on the GPU

/// A launch of 1,000 block-tasks with two workers on each of ten SMs, from kStart to kDone.
class LaunchTimesTest : public testing::Test {
 protected:
  LaunchTimesTest() {
    launch_.per_sm = 2;
    launch_.args.tasks = 1000;
    launch_.args.workers = launch_.launched = 20;
    launch_.args.range = pack_range(10, kNoLimit);
    launch_.issued_ns = kIssued;
    host_.start_ns = kStart;
    host_.done_ns = kDone;
    times_.add(launch_, host_, kDone + kOffset);
  }

  Launch launch_;
  gpuctl::ptx::HostSlot host_{};
  LaunchTimes times_;
};

TEST_F(LaunchTimesTest, OfAnUndisturbedLaunchTheWholeTimeCounts) {
  const LaunchTimes::Stretch stretch = times_.undisturbed_stretch(launch_, host_);
  EXPECT_EQ(stretch.sms, 10u);
  EXPECT_EQ(stretch.from_ns, kStart + static_cast<std::uint64_t>(times_.clock_offset()));
  EXPECT_DOUBLE_EQ(times_.task_time(launch_, host_, stretch), (kDone - kStart) * 20 / 1000.0);
}

TEST_F(LaunchTimesTest, WorkersThatLandedOnOtherSmsAndLeftAtOnceDoNotDisturb) {
  host_.left_ns = kStart + 1'000;
  EXPECT_EQ(times_.undisturbed_stretch(launch_, host_).sms, 10u);
  host_.left_ns = kStart + kMs;
  EXPECT_EQ(times_.undisturbed_stretch(launch_, host_).from_ns, 0u);
}

TEST_F(LaunchTimesTest, WithoutAGrantTheTimeBeginsWhenAllWorkersWereSent) {
  launch_.launched = 40;
  launch_.growth.given_ns = kIssued + 4 * kMs;
  launch_.growth.topped_up_for = pack_range(20, kNoLimit);
  const LaunchTimes::Stretch stretch = times_.undisturbed_stretch(launch_, host_);
  EXPECT_EQ(stretch.from_ns, kIssued + 4 * kMs);
  EXPECT_EQ(stretch.sms, 20u);
  launch_.measured.evictions = 1;
  EXPECT_EQ(times_.undisturbed_stretch(launch_, host_).from_ns, 0u);
}

TEST_F(LaunchTimesTest, OfADisturbedLaunchThatWasNotSeenRunningTheLeaderIsBelieved) {
  launch_.launched = 21;
  host_.task_ns = 777;
  EXPECT_EQ(times_.task_time(launch_, host_, times_.undisturbed_stretch(launch_, host_)), 777);
}

TEST_F(LaunchTimesTest, OfADisturbedLaunchThatWasSeenTheWorkOfAllItsWorkersCounts) {
  launch_.launched = 21;
  const auto offset = static_cast<std::uint64_t>(times_.clock_offset());
  launch_.measured.work.set(20, kStart + offset);
  launch_.measured.work.set(10, kStart + offset + 5 * kMs);
  EXPECT_DOUBLE_EQ(times_.task_time(launch_, host_, {}), 5 * kMs * 30 / 1000.0);
}

}  // namespace
}  // namespace gpuslice::launch_times_test
