#include "libgpuslice/agent/opaque_pace.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

constexpr std::uint64_t kMicrosecond = 1'000, kMillisecond = 1'000'000;
constexpr OpaquePace::Seen kRuns{.epoch = 1, .demand = 132, .running = 132, .oldest_ns = 5};

TEST(OpaquePace, LooksAtAUsualPaceWhileNobodyWaits) {
  OpaquePace pace;
  EXPECT_EQ(pace.left_ns(kMillisecond, 1), 0u);
  for (std::uint64_t now = kMillisecond; now < 10 * kMillisecond; now += OpaquePace::kUsualNs) {
    pace.looked(now, kRuns, false);
    EXPECT_EQ(pace.left_ns(now, 1), OpaquePace::kUsualNs);
    EXPECT_EQ(pace.left_ns(now + 200 * kMicrosecond, 1), OpaquePace::kUsualNs - 200 * kMicrosecond);
  }
}

TEST(OpaquePace, SeesAnEndLateByAnEighthWhereOthersWait) {
  OpaquePace pace;
  std::uint64_t now = kMillisecond, looks = 0;
  for (; now < 3 * kMillisecond; now += pace.left_ns(now, 1), ++looks) {
    pace.looked(now, kRuns, true);
    const std::uint64_t ran = now - kMillisecond;
    EXPECT_EQ(pace.left_ns(now, 1), std::max<std::uint64_t>(ran / 8, 50 * kMicrosecond));
  }
  EXPECT_LT(looks, 25u);
  for (int i = 0; i < 50; ++i) pace.looked(now += pace.left_ns(now, 1), kRuns, true);
  EXPECT_EQ(pace.left_ns(now, 1), OpaquePace::kUsualNs);  // what runs for long is asked about as rarely as ever
}

TEST(OpaquePace, LooksAgainSoonAfterWhatIsNew) {
  OpaquePace pace;
  pace.looked(kMillisecond, kRuns, true);
  std::uint64_t now = 20 * kMillisecond;
  pace.looked(now, kRuns, true);
  EXPECT_EQ(pace.left_ns(now, 1), OpaquePace::kUsualNs);
  for (const OpaquePace::Seen& seen : {
           OpaquePace::Seen{.epoch = 1, .demand = 132, .running = 0, .oldest_ns = 5},  // empty, as seen once
           OpaquePace::Seen{.epoch = 1, .demand = 132, .running = 0, .oldest_ns = 8},
           OpaquePace::Seen{.epoch = 1, .demand = 10, .running = 0, .oldest_ns = 8},
       }) {
    pace.looked(now += 10 * kMillisecond, seen, true);
    EXPECT_EQ(pace.left_ns(now, 1), OpaquePace::kShortestNs);
    pace.looked(now += 10 * kMillisecond, seen, true);
    EXPECT_EQ(pace.left_ns(now, 1), OpaquePace::kUsualNs);
  }
}

TEST(OpaquePace, ANewGrantIsTimeForALook) {
  OpaquePace pace;
  pace.looked(kMillisecond, kRuns, false);
  EXPECT_EQ(pace.left_ns(kMillisecond, 2), 0u);
  pace.looked(kMillisecond, {.epoch = 2, .demand = 132, .running = 132, .oldest_ns = 5}, true);
  EXPECT_EQ(pace.left_ns(kMillisecond, 2), OpaquePace::kShortestNs);
}

}  // namespace
}  // namespace gpuslice
