#include "libgpuslice/streams/in_flight_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace gpuslice {
namespace {

constexpr std::uint64_t kUs = 1'000;
constexpr Ahead kUnderJobs = ahead_for(true, {}), kMayShrink = ahead_for(false, {}),
                kSettled = ahead_for(false, std::chrono::milliseconds(200));

/// A program that launches one mark's worth of work every `program_us` unless it must wait, on a GPU that takes
/// `gpu_us` for it.
class Loop {
 public:
  Loop(std::uint64_t program_us, std::uint64_t gpu_us) : program_ns_(program_us * kUs), gpu_ns_(gpu_us * kUs) {}

  void run(int rounds, Ahead ahead) {
    for (int i = 0; i < rounds; ++i) round(ahead);
  }
  /// The program waits until all is done, and then does something else for this long.
  void pause(std::uint64_t us) { now_ns_ = std::max(now_ns_, done_ns_.back()) + us * kUs; }
  /// How far the program is ahead now, in GPU time.
  std::uint64_t ahead_us() const { return (std::max(now_ns_, done_ns_.back()) - now_ns_) / kUs; }
  const InFlightLimit& limit() const { return limit_; }

 private:
  void round(Ahead ahead) {
    const std::uint64_t latest = done_ns_.size() - 1, before = limit_.marks(ahead);
    if (latest > before) {
      const std::uint64_t at = done_ns_[latest - before];
      const bool waits = at > now_ns_;
      now_ns_ = std::max(now_ns_, at);
      limit_.reached(latest - before, waits, now_ns_);
    }
    now_ns_ += program_ns_;
    done_ns_.push_back(std::max(now_ns_, done_ns_.back()) + gpu_ns_);
  }

  const std::uint64_t program_ns_, gpu_ns_;
  std::uint64_t now_ns_ = 1'000'000'000;
  std::vector<std::uint64_t> done_ns_{0};  ///< when each mark was reached
  InFlightLimit limit_;
};

TEST(InFlightLimit, IsByWhatMayHappenToTheGrant) {
  using std::chrono::milliseconds;
  EXPECT_EQ(ahead_for(true, milliseconds(200)).most, milliseconds(4));
  EXPECT_EQ(ahead_for(false, milliseconds(0)).most, milliseconds(20));
  EXPECT_EQ(ahead_for(false, milliseconds(200)).most, milliseconds(200));
  EXPECT_EQ(ahead_for(false, milliseconds(5)).most, milliseconds(5)) << "the administrator's word";
}

TEST(InFlightLimit, OneMarkUntilSomethingIsKnown) {
  EXPECT_EQ(InFlightLimit().marks(kMayShrink), 1u);
  EXPECT_EQ(InFlightLimit().marks(kUnderJobs), 1u);
}

TEST(InFlightLimit, LetsAProgramAheadByGpuTime) {
  Loop jobs(100, 1'000), other(100, 1'000), settled(100, 4'000);
  jobs.run(50, kUnderJobs);
  other.run(50, kMayShrink);
  settled.run(100, kSettled);
  EXPECT_EQ(jobs.limit().marks(kUnderJobs), 3u);
  EXPECT_LE(jobs.ahead_us(), 4'000u);
  EXPECT_GE(jobs.ahead_us(), 3'000u);
  EXPECT_LE(other.ahead_us(), 20'000u);
  EXPECT_GE(other.ahead_us(), 18'000u);
  EXPECT_LE(settled.ahead_us(), 200'000u);
  EXPECT_GE(settled.ahead_us(), 190'000u);
}

TEST(InFlightLimit, OfLongLaunchesNoMoreThanOneMark) {
  Loop loop(100, 50'000);
  loop.run(20, kUnderJobs);
  EXPECT_EQ(loop.limit().marks(kUnderJobs), 1u);
  EXPECT_EQ(loop.limit().marks(kMayShrink), 1u);
}

TEST(InFlightLimit, OfShortLaunchesNoMoreThanThereAreMarks) {
  Loop loop(10, 50);
  loop.run(100, kMayShrink);
  EXPECT_EQ(loop.limit().marks(kMayShrink), InFlightLimit::kMost);
}

TEST(InFlightLimit, LetsNoProgramFurtherForWhatItLaunchesBetweenPauses) {
  Loop loop(100, 50'000);
  for (int i = 0; i < 10; ++i) {
    loop.run(6, kUnderJobs);  // it does not wait for the first two
    loop.pause(10'000);
  }
  EXPECT_EQ(loop.limit().marks(kUnderJobs), 1u);
}

TEST(InFlightLimit, DoesNotTakePausesForTheGpusTime) {
  Loop loop(100, 1'000);
  loop.run(50, kMayShrink);
  for (int i = 0; i < 10; ++i) {
    loop.pause(10'000'000);
    loop.run(20, kMayShrink);
  }
  EXPECT_GE(loop.limit().marks(kMayShrink), 2u);
}

/// What a look found.
class Found {
 public:
  void marks(int count, std::uint64_t each_us, bool waited = true) {
    for (int i = 0; i < count; ++i) limit.reached(++mark_, waited, now_ns_ += each_us * kUs);
  }
  /// Adds one mark, this long after the one before it.
  void mark_behind(int count, std::uint64_t each_us) {
    limit.reached(mark_ += count, true, now_ns_ += count * each_us * kUs);
  }
  void earlier_mark(std::uint64_t after_us) { limit.reached(mark_ - 3, false, now_ns_ += after_us * kUs); }

  InFlightLimit limit;

 private:
  std::uint64_t now_ns_ = 1'000'000'000, mark_ = 0;
};

TEST(InFlightLimit, FollowsLaunchesThatGetLongerAndShorter) {
  Found found;
  found.marks(10, 50);
  EXPECT_EQ(found.limit.marks(kUnderJobs), InFlightLimit::kMost);
  found.marks(10, 3'000);
  EXPECT_EQ(found.limit.marks(kUnderJobs), 1u);
  found.marks(30, 50);
  EXPECT_EQ(found.limit.marks(kUnderJobs), InFlightLimit::kMost);
}

TEST(InFlightLimit, OneOddKernelSwingsThePaceUnderAPolicyForJobsAlone) {
  Found found;
  found.marks(100, 1'000);
  found.marks(1, 20'000);
  EXPECT_EQ(found.limit.marks(kUnderJobs), 1u);
  EXPECT_GE(found.limit.marks(kMayShrink), 14u);
  EXPECT_GE(found.limit.marks(kSettled), 60u);
}

TEST(InFlightLimit, TheLongTermMeanIsThatOfAWholeStep) {
  Found found;
  for (int step = 0; step < 5; ++step) {  // 62 marks of 1 ms in the mean
    found.marks(31, 100);
    found.marks(31, 1'900);
  }
  EXPECT_GE(found.limit.marks(kMayShrink), 11u) << "at the end of the long ones";
  found.marks(31, 100);
  EXPECT_LE(found.limit.marks(kMayShrink), 30u) << "at the end of the short ones";
}

TEST(InFlightLimit, TheLongTermMeanFollowsToo) {
  Found found;
  found.marks(100, 1'000);
  found.marks(300, 10'000);
  EXPECT_EQ(found.limit.marks(kMayShrink), 1u);
  found.marks(600, 1'000);
  EXPECT_GE(found.limit.marks(kMayShrink), 17u);
}

TEST(InFlightLimit, TakesTheMeanOfMarksThatNobodyWaitedFor) {
  Found found;
  for (int i = 0; i < 10; ++i) found.mark_behind(3, 1'000);
  EXPECT_EQ(found.limit.marks(kUnderJobs), 3u);
}

TEST(InFlightLimit, LearnsNothingFromTheTimeSinceAMarkThatWasReachedSomeTimeBefore) {
  Found found;
  found.marks(10, 1'000);
  for (int i = 0; i < 10; ++i) {
    found.marks(1, 10'000, false);
    found.marks(1, 1);
  }
  EXPECT_EQ(found.limit.marks(kUnderJobs), 3u);
}

TEST(InFlightLimit, LearnsNothingFromMarksItKnows) {
  Found found;
  found.marks(10, 1'000);
  for (int i = 0; i < 10; ++i) found.earlier_mark(1);
  found.marks(1, 990);
  EXPECT_EQ(found.limit.marks(kUnderJobs), 3u);
}

}  // namespace
}  // namespace gpuslice
