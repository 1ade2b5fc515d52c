#include "libgpuslice/streams/settling.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

using Device = Settling::Device;

TEST(Settling, WaitsUntilTheDeviceIsIdle) {
  int looks = 0;
  EXPECT_TRUE(Settling::wait([&] { return ++looks == 3 ? Device::kIdle : Device::kRuns; }));
  EXPECT_EQ(looks, 3);
}

TEST(Settling, GivesUpWhereTheDeviceStaysBusy) {
  EXPECT_FALSE(Settling::wait([] { return Device::kMayWait; }));
  int looks = 0;
  EXPECT_FALSE(Settling::wait([&] { return ++looks, Device::kBroken; }));
  EXPECT_EQ(looks, 1);
}

TEST(Settling, DoesNotTryAgainRightAfterAWaitInVain) {
  Settling settling;
  ASSERT_TRUE(settling.begin());
  settling.end(true);
  ASSERT_TRUE(settling.begin());
  settling.end(false);
  EXPECT_FALSE(settling.begin());
}

TEST(Settling, IsForOneThreadAtATimeAndTheOthersWait) {
  Settling settling;
  ASSERT_TRUE(settling.begin());
  EXPECT_FALSE(settling.begin());
  std::atomic<bool> ended{false};
  std::thread other([&] {
    settling.let_pass([] { return false; });
    EXPECT_TRUE(ended);
  });
  ended = true;
  settling.end(true);
  other.join();
}

TEST(Settling, TheOthersDoNotWaitForEverWhereAStreamMayWait) {
  Settling settling;
  ASSERT_TRUE(settling.begin());
  settling.let_pass([] { return true; });
  EXPECT_FALSE(settling.begin());
}

}  // namespace
}  // namespace gpuslice
