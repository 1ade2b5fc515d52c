#include "kernels/particles/tpacf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "kernels/particles/tpacf_bins.h"

namespace gpuctl::bench::tpacf {
namespace {

TEST(Tpacf, EdgesAreTheCosinesOfTheAngles) {
  for (unsigned k = 0; k < kTpacfEdges; ++k) {
    const double minutes = std::pow(10.0, k / 5.0);
    EXPECT_EQ(kTpacfCosines[k], static_cast<float>(std::cos(minutes / 60 * std::numbers::pi / 180))) << k;
  }
}

TEST(Tpacf, EveryPairIsCountedOnce) {
  const Extent extent{70, 3};
  const Words out = reference(extent, generate(extent, 5));
  ASSERT_EQ(out.size(), 7 * kTpacfBins);
  for (unsigned block = 0; block < 7; ++block) {
    const auto begin = out.begin() + block * kTpacfBins;
    const std::uint32_t pairs = std::accumulate(begin, begin + kTpacfBins, 0u);
    EXPECT_EQ(pairs, block >= 1 && block <= 3 ? 70u * 70 : 70u * 69 / 2) << block;
  }
}

// Half of the observed points are in clusters of two degrees: many more close pairs than among random points.
TEST(Tpacf, ObservedPointsCluster) {
  const Extent extent{400, 2};
  const Words out = reference(extent, generate(extent, 5));
  const auto close_pairs = [&](unsigned block) {  // below 100 minutes
    const auto begin = out.begin() + block * kTpacfBins;
    return std::accumulate(begin, begin + 11, 0u);
  };
  EXPECT_GT(close_pairs(0), 10 * (close_pairs(3) + close_pairs(4)));
}

}  // namespace
}  // namespace gpuctl::bench::tpacf
