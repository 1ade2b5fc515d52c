// The places of workers that share SMs (persistent_abi.h, "Places").
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ptx/persistent_abi.h"

namespace gpuctl::ptx::place_test {
namespace {

/// How many workers may stay on each SM under a grant of so many SMs, if they came to one SM after the other.
std::vector<std::uint32_t> staying(std::uint32_t grant, std::uint32_t sms, std::uint32_t per_sm) {
  std::vector<std::uint32_t> counts(sms);
  for (std::uint32_t sm = 0; sm < sms; ++sm)
    for (std::uint32_t rank = 0; rank < per_sm; ++rank) counts[sm] += place(rank, sm, sms, per_sm) < grant;
  return counts;
}

TEST(Place, AGrantIsAsManyWorkersAsThatManySmsHold) {
  for (const std::uint32_t sms : {1u, 7u, 8u, 132u, 256u})
    for (std::uint32_t per_sm = 1; per_sm <= 32; ++per_sm)
      for (std::uint32_t grant = 0; grant <= sms; ++grant) {
        const auto counts = staying(grant, sms, per_sm);
        std::uint32_t sum = 0;
        for (const std::uint32_t count : counts) sum += count;
        ASSERT_EQ(sum, grant * per_sm) << grant << " of " << sms << ", " << per_sm;
        const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
        ASSERT_LE(*most - *least, 1u) << "they are spread evenly";
      }
}

TEST(Place, AnySmCanHaveTheOneMore) {
  // Three SMs that hold two each. A grant of two is four workers: the second of the SM to which a second comes first.
  EXPECT_LT(place(0, 2, 3, 2), 2u);
  EXPECT_LT(place(1, 0, 3, 2), 2u);
  EXPECT_GE(place(1, 1, 3, 2), 2u);
}

TEST(Place, RanksBeyondTheLastAreCountedTogether) {
  // 32 workers an SM, all but 23 of them with the last rank.
  constexpr std::uint32_t kSms = 132, kPerSm = 32;
  static_assert(place(kLastRank, (kPerSm - kLastRank) * kSms - 1, kSms, kPerSm) == kSms - 1);
  static_assert(place(kLastRank, (kPerSm - kLastRank) * kSms, kSms, kPerSm) == kSms);
}

TEST(Place, WorkersFindItWithTheDivisor) {
  for (const std::uint32_t sms : {8u, 132u, 256u})
    for (std::uint32_t per_sm = 1; per_sm <= 32; ++per_sm) {
      const Divisor by = divisor(per_sm);
      for (std::uint32_t rank = 0; rank <= 32; ++rank)
        for (const std::uint32_t sm : {0u, 1u, sms / 2, sms - 1}) {
          const std::uint64_t n = rank * sms + sm;
          const auto found = static_cast<std::uint32_t>(2 * n * by.magic >> 32) >> by.shift;
          ASSERT_EQ(found, place(rank, sm, sms, per_sm));
          ASSERT_EQ(found >> kPlaceBits, 0u);
        }
    }
}

}  // namespace
}  // namespace gpuctl::ptx::place_test
