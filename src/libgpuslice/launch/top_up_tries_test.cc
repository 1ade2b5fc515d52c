#include "libgpuslice/launch/top_up_tries.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

constexpr std::uint32_t kNone = 0, kSome = 66u << 16, kAll = 132u << 16;

TEST(TopUpTries, PausesGetLongerWhileTheRangeIsTheSame) {
  TopUpTries tries;
  EXPECT_EQ(tries.allow(kAll), 0u);
  EXPECT_EQ(tries.next_ns(), 0u);
  std::uint64_t now = 1'000'000, pause = TopUpTries::kFirstPauseNs;
  for (int i = 0; i < 12; ++i) {
    tries.tried(now);
    EXPECT_EQ(tries.allow(kAll), kAll);
    EXPECT_EQ(tries.next_ns() - now, pause);
    now = tries.next_ns();
    pause = std::min(2 * pause, TopUpTries::kLongestPauseNs);
  }
}

TEST(TopUpTries, WhoIsGivenTheSameAgainNeedNotWait) {
  TopUpTries tries;
  for (std::uint64_t now = 1; now < 100; ++now) {
    tries.allow(kAll);
    EXPECT_EQ(tries.next_ns(), 0u);
    tries.tried(now);
    EXPECT_EQ(tries.allow(kNone), kAll);
  }
  tries.allow(kAll);
  tries.tried(1000);
  EXPECT_EQ(tries.next_ns(), 1000 + TopUpTries::kFirstPauseNs) << "nor does the pause go on growing";
}

TEST(TopUpTries, NorWhoIsGivenMore) {
  TopUpTries tries;
  tries.allow(kSome);
  tries.tried(1000);
  EXPECT_EQ(tries.allow(kAll), kSome);
  EXPECT_EQ(tries.next_ns(), 0u);
}

}  // namespace
}  // namespace gpuslice
