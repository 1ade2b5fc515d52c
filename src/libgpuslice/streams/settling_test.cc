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
  EXPECT_FALSE(Settling::wait([] { return Device::kRuns; }));
  EXPECT_FALSE(Settling::wait([] { return Device::kMayWait; }));
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
    settling.let_pass();
    EXPECT_TRUE(ended);
  });
  ended = true;
  settling.end(true);
  other.join();
}

}  // namespace
}  // namespace gpuslice
