// The places of workers that share SMs (persistent_abi.h, "Places").
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ptx/persistent_abi.h"

namespace gpuctl::ptx::place_test {
namespace {

/// How many workers may stay on each SM under a grant of so many SMs, if every SM is full of them.
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

TEST(Place, OneWorkerOfAnSmIsAsItWouldBeWithWholeSms) {
  for (std::uint32_t sm = 0; sm < 132; ++sm) EXPECT_EQ(place(0, sm, 132, 1), sm);
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
