#include "libgpuslice/agent/blocked_worker_streams.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

TEST(BlockedWorkerStreams, WhenNoStreamIsFoundForLong) {
  constexpr std::uint64_t kNow = 5'000'000'000, kLasts = BlockedWorkerStreams::kLastsNs;
  BlockedWorkerStreams blocked;
  EXPECT_FALSE(blocked.tried(false, kNow));
  EXPECT_FALSE(blocked.tried(false, kNow + kLasts - 1));
  EXPECT_FALSE(blocked.tried(true, kNow + kLasts));
  EXPECT_FALSE(blocked.tried(false, kNow + kLasts + 1));
  EXPECT_FALSE(blocked.tried(false, kNow + 2 * kLasts));
  EXPECT_TRUE(blocked.tried(false, kNow + 2 * kLasts + 1));
  EXPECT_TRUE(blocked.tried(false, kNow + 3 * kLasts));
  EXPECT_FALSE(blocked.tried(true, kNow + 3 * kLasts));
}

}  // namespace
}  // namespace gpuslice
