#include "libgpuslice/client/reconnect.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace gpuslice {
namespace {

using namespace std::chrono_literals;

constexpr Reconnect::Socket kNone{}, kOld{.device = 1, .inode = 2, .changed_ns = 3};
constexpr Reconnect::Time kStart{1h};
using Why = Reconnect::Why;

/// The pauses of a client that finds nothing for `count` tries, which looks every millisecond.
std::vector<std::chrono::milliseconds> pauses(Reconnect& reconnect, int count, Why why = Why::no_daemon) {
  std::vector<std::chrono::milliseconds> found;
  Reconnect::Time now = kStart;
  for (int i = 0; i < count; ++i) {
    reconnect.failed(now, kOld, why);
    const Reconnect::Time before = now;
    while (!reconnect.due(now, kOld)) now += 1ms;
    found.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(now - before));
  }
  return found;
}

TEST(Reconnect, TriesAtOnceAtFirst) {
  EXPECT_TRUE(Reconnect(1).due(kStart, kNone));
}

TEST(Reconnect, PausesGrowToTheLongest) {
  Reconnect reconnect(1);
  std::chrono::milliseconds most = Reconnect::kShortest;
  for (const std::chrono::milliseconds pause : pauses(reconnect, 12)) {
    EXPECT_GE(pause, most / 2);
    EXPECT_LE(pause, most + 1ms);
    most = std::min(2 * most, Reconnect::kLongest);
  }
  EXPECT_EQ(most, Reconnect::kLongest);
}

TEST(Reconnect, WhoHoldsAGrantIsBackWhileItCounts) {
  Reconnect reconnect(1);
  for (const std::chrono::milliseconds pause : pauses(reconnect, 100, Why::no_daemon_for_held))
    EXPECT_LT(pause, gpuctl::ipc::kGrace / 2) << "a daemon may come at any time";
}

TEST(Reconnect, WhoIsRefusedDoesNotAskAgainSoon) {
  Reconnect reconnect(1);
  pauses(reconnect, 3, Why::no_daemon_for_held);
  EXPECT_GE(pauses(reconnect, 12, Why::refused).back(), Reconnect::kLongest / 2);
}

TEST(Reconnect, ClientsTryAtDifferentTimes) {
  std::set<std::chrono::milliseconds> different;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Reconnect reconnect(seed);
    different.insert(pauses(reconnect, 6).back());
  }
  EXPECT_GT(different.size(), 50u);
}

TEST(Reconnect, BeginsAnewAfterItWasAttached) {
  Reconnect reconnect(1);
  pauses(reconnect, 12);
  reconnect.attached();
  EXPECT_LE(pauses(reconnect, 1).front(), Reconnect::kShortest + 1ms);
}

TEST(Reconnect, ASocketThatAppearsIsTriedAtOnce) {
  Reconnect reconnect(1);
  reconnect.failed(kStart, kNone, Why::no_daemon);
  EXPECT_FALSE(reconnect.due(kStart, kNone));
  EXPECT_TRUE(reconnect.due(kStart, kOld));
}

TEST(Reconnect, ASocketThatWasRefusedIsNotTriedAgainBeforeItsTime) {
  Reconnect reconnect(1);
  reconnect.failed(kStart, kOld, Why::refused);
  EXPECT_FALSE(reconnect.due(kStart, kOld));
  EXPECT_FALSE(reconnect.due(kStart, kNone)) << "a socket that is removed is no reason to try";
  EXPECT_TRUE(reconnect.due(kStart, {.device = 1, .inode = 4, .changed_ns = 3}));
  EXPECT_TRUE(reconnect.due(kStart, {.device = 1, .inode = 2, .changed_ns = 4})) << "made anew, with the same inode";
}

}  // namespace
}  // namespace gpuslice
