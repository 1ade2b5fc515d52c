#include "libgpuslice/streams/settling.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

using Device = Settling::Device;
using Seen = Settling::Seen;
using namespace std::chrono_literals;

constexpr Settling::Clock::time_point kBegin{1h};
const auto kNobodyWaits = [] { return false; };
const auto kSomeoneWaits = [] { return true; };

/// How long a wait that begins at `now` lasts while nothing gets on, where what runs may wait for the program.
Settling::Clock::duration longest(const Settling& settling, Settling::Clock::time_point now) {
  return settling.limits(now).while_it_may_wait;
}

TEST(Settling, WaitsUntilTheDeviceIsIdle) {
  Settling settling;
  int looks = 0;
  EXPECT_TRUE(settling.wait([&] { return Seen{++looks == 3 ? Device::kIdle : Device::kBusy}; }, kNobodyWaits));
  EXPECT_EQ(looks, 3);
}

TEST(Settling, GivesUpWhereTheDeviceStaysBusy) {
  Settling settling;
  EXPECT_FALSE(settling.wait([] { return Seen{Device::kBusy}; }, kSomeoneWaits));
  int looks = 0;
  EXPECT_FALSE(settling.wait([&] { return ++looks, Seen{Device::kBroken}; }, kNobodyWaits));
  EXPECT_EQ(looks, 1);
}

TEST(Settling, GoesOnWaitingWhileWhatRunsGetsOn) {
  Settling settling;
  std::uint64_t looks = 0;
  const auto until = Settling::Clock::now() + 2 * Patience::kWhileItMayWait;
  EXPECT_TRUE(settling.wait(
      [&] {
        return Seen{Settling::Clock::now() < until ? Device::kBusy : Device::kIdle, ++looks};
      },
      kSomeoneWaits));
}

TEST(Settling, OnlyLooksRightAfterAWaitInVain) {
  Settling settling;
  ASSERT_TRUE(settling.begin());
  settling.end(false, Settling::Clock::now());
  int looks = 0;
  ASSERT_TRUE(settling.begin());
  EXPECT_FALSE(settling.wait([&] { return ++looks, Seen{Device::kBusy}; }, kSomeoneWaits));
  EXPECT_EQ(looks, 1);
  EXPECT_TRUE(settling.wait([] { return Seen{Device::kIdle}; }, kSomeoneWaits));
  settling.end(true);
  EXPECT_EQ(longest(settling, Settling::Clock::now()), Patience::kWhileItMayWait);
}

TEST(Settling, WaitsLongerAndMoreRarelyAfterEachWaitInVain) {
  Settling settling;
  auto now = kBegin;
  Settling::Clock::duration pause = Settling::kFirstPause, wait = Patience::kWhileItMayWait;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(longest(settling, now), wait);
    EXPECT_EQ(settling.limits(now).while_it_runs, Patience::kWhileItRuns);
    settling.end(false, now);
    settling.end(false, now + pause / 2);  // who only looked
    EXPECT_EQ(longest(settling, now + pause - 1ns), 0ns);
    EXPECT_EQ(settling.limits(now + pause - 1ns).while_it_runs, 0ns);
    now += pause;
    pause = std::min<Settling::Clock::duration>(2 * pause, Settling::kLongestPause);
    wait = std::min<Settling::Clock::duration>(2 * wait, Settling::kLongestWhileItMayWait);
  }
  settling.end(true, now);
  EXPECT_EQ(longest(settling, now), Patience::kWhileItMayWait);
}

TEST(Settling, IsForOneThreadAtATimeAndTheOthersWait) {
  Settling settling;
  ASSERT_TRUE(settling.begin());
  EXPECT_FALSE(settling.begin());
  std::atomic<bool> ended{false};
  std::thread other([&] {
    settling.let_pass(kNobodyWaits);
    EXPECT_TRUE(ended);
  });
  ended = true;
  settling.end(true);
  other.join();
}

TEST(Settling, TheOthersDoNotWaitForEverWhereAStreamMayWait) {
  Settling settling;
  ASSERT_TRUE(settling.begin());
  settling.let_pass(kSomeoneWaits);
  EXPECT_FALSE(settling.begin());
}

}  // namespace
}  // namespace gpuslice
