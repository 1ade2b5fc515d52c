#include "softgpu/device/sm_numbers.h"

#include <gtest/gtest.h>

namespace gpuctl::softgpu {
namespace {

TEST(SmNumbers, CountTheSmsInUse) {
  SmNumbers numbers(4);
  EXPECT_EQ(numbers.enter(2), 0u);
  EXPECT_EQ(numbers.enter(3), 1u);
  EXPECT_EQ(numbers.enter(2), 0u) << "a second block on the same SM";
}

TEST(SmNumbers, AnSmLosesItsNumberWithItsLastBlock) {
  SmNumbers numbers(4);
  numbers.enter(0);
  numbers.enter(0);
  numbers.enter(1);
  numbers.leave(0);
  EXPECT_EQ(numbers.enter(2), 2u) << "number 0 is still in use";
  numbers.leave(0);
  EXPECT_EQ(numbers.enter(3), 0u);
  EXPECT_EQ(numbers.enter(0), 3u);
}

}  // namespace
}  // namespace gpuctl::softgpu
