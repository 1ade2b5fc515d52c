#include "libgpuslice/agent/held_up.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

TEST(HeldUp, WhenNoStreamIsFoundForLong) {
  constexpr std::uint64_t kNow = 5'000'000'000, kLasts = HeldUp::kLastsNs;
  HeldUp held;
  EXPECT_FALSE(held.tried(false, kNow));
  EXPECT_FALSE(held.tried(false, kNow + kLasts - 1));
  EXPECT_FALSE(held.tried(true, kNow + kLasts));
  EXPECT_FALSE(held.tried(false, kNow + kLasts + 1));
  EXPECT_FALSE(held.tried(false, kNow + 2 * kLasts));
  EXPECT_TRUE(held.tried(false, kNow + 2 * kLasts + 1));
  EXPECT_TRUE(held.tried(false, kNow + 3 * kLasts));
  EXPECT_FALSE(held.tried(true, kNow + 3 * kLasts));
}

}  // namespace
}  // namespace gpuslice
