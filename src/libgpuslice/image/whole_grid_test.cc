#include "libgpuslice/image/whole_grid.h"

#include <gtest/gtest.h>

#include "libgpuslice/image/co_residency.h"
#include "libgpuslice/testing/fake_driver.h"

namespace gpuslice {

namespace {

using gpuctl::ptx::BlocksWait;

struct WholeGridTest : ::testing::Test {
  WholeGridTest() { fake_blocks_per_sm = 2; }

  /// On a device of 16 SMs.
  std::uint32_t least(std::uint64_t blocks, std::uint32_t told = 16) {
    return least_sms_of(&kernel, {.blocks = blocks, .threads = 64, .sms = 16, .told = told});
  }

  KernelInfo kernel;
};

TEST_F(WholeGridTest, OneThatWaitsGoesWhereTheDeviceHoldsIt) {
  kernel.blocks_wait = BlocksWait::kYes;
  EXPECT_EQ(least(1), 0u);
  EXPECT_EQ(least(9), 5u);
  EXPECT_EQ(least(32), 16u);
  EXPECT_EQ(least(32, 8), 16u) << "whatever it was told";
  EXPECT_EQ(least(33), 0u) << "its blocks can only wait for those before them";
}

TEST_F(WholeGridTest, OfMachineCodeWhatTheProgramWasToldCounts) {
  EXPECT_EQ(least(16, 8), 8u);
  EXPECT_EQ(least(17, 8), 0u);
  EXPECT_EQ(least_sms_of(nullptr, {.blocks = 16, .threads = 64, .sms = 16, .told = 8}), 8u);
}

TEST_F(WholeGridTest, OneThatIsKnownNotToWaitGoesAnywhere) {
  kernel.blocks_wait = BlocksWait::kNo;
  fake_occupancy_questions = 0;
  EXPECT_EQ(least(32), 0u);
  EXPECT_EQ(fake_occupancy_questions, 0);
}

TEST_F(WholeGridTest, OneThatIsKnownByItsNameIsNeverConfinedToFewer) {
  kernel.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
  note_by_name(kernel);
  EXPECT_EQ(least(9), 5u);
  EXPECT_EQ(least(33), kAllSms);
}

TEST_F(WholeGridTest, TheDriverIsAskedOnceForAKindOfBlocks) {
  fake_occupancy_questions = 0;
  EXPECT_EQ(least(32), 16u);
  EXPECT_EQ(least(31), 16u);
  EXPECT_EQ(fake_occupancy_questions, 1);
  fake_blocks_per_sm = 4;
  EXPECT_EQ(least_sms_of(&kernel, {.blocks = 32, .threads = 32, .sms = 16, .told = 16}), 8u);
  EXPECT_EQ(fake_occupancy_questions, 2);
}

}  // namespace
}  // namespace gpuslice
