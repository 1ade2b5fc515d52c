#include "kernels/searches/nearest_neighbor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace gpuctl::bench::nearest_neighbor {
namespace {

TEST(NearestNeighbor, DistancesAreNearThoseInDoubles) {
  const Problem problem = generate({1000}, 3);
  const Words out = reference({1000}, problem);
  const auto argument = [&](std::size_t k) {
    return double{std::bit_cast<float>(problem.steps[0].arguments[k].value)};
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double latitude = std::bit_cast<float>(problem.inputs[0][2 * i]);
    const double longitude = std::bit_cast<float>(problem.inputs[0][2 * i + 1]);
    const double distance = std::hypot(latitude - argument(2), longitude - argument(3));
    EXPECT_NEAR(std::bit_cast<float>(out[i]), distance, 1e-4);
  }
}

}  // namespace
}  // namespace gpuctl::bench::nearest_neighbor
