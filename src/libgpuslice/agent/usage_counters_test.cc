#include "libgpuslice/agent/usage_counters.h"

#include <gtest/gtest.h>

#include <iterator>
#include <vector>

namespace gpuslice {
namespace {

TEST(UsageCounters, EachBucketOfAHistogramIsTwiceAsWideAsTheOneBefore) {
  std::uint32_t histogram[4] = {};
  for (const std::uint64_t us : {0, 1, 2, 3, 4, 7, 8, 1'000'000}) count_in(histogram, us * 1000 + 999);
  EXPECT_EQ(std::vector<std::uint32_t>(std::begin(histogram), std::end(histogram)),
            (std::vector<std::uint32_t>{2, 2, 2, 2}));
}

}  // namespace
}  // namespace gpuslice
