#include "kernels/timing/iterations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/problem/random.h"
#include "kernels/run/driver.h"

namespace gpuctl::bench {
namespace {

/// A kernel that takes fixed + iterations * each microseconds, give or take `noise`.
struct Kernel {
  double fixed_us;
  double each_us;
  double noise_us = 0;
  Random random{1};
  double longest_us = 0;
  int tries = 0;

  double operator()(std::uint32_t iterations) {
    ++tries;
    const double us = fixed_us + each_us * iterations + noise_us * (2 * random.uniform() - 1);
    longest_us = std::max(longest_us, us);
    return us;
  }
  double exact(std::uint32_t iterations) const { return fixed_us + each_us * iterations; }
};

TEST(Iterations, ComesNearTheTarget) {
  for (const double each_us : {0.01, 0.05, 3.0, 200.0}) {
    for (const double target_us : {1'000.0, 50'000.0, 1'000'000.0}) {
      Kernel kernel{5, each_us};
      const std::uint32_t found = iterations_for(std::ref(kernel), target_us);
      EXPECT_NEAR(kernel.exact(found), target_us, std::max(each_us, 0.01 * target_us)) << each_us;
    }
  }
}

// The fixed cost is half of the target, and differs by more from launch to launch than a few iterations take. A line
// through two such times once asked for millions of iterations.
TEST(Iterations, NoiseNearTheFixedCostDoesNotMislead) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Kernel kernel{4.5, 0.04, 1, Random(seed)};
    const std::uint32_t found = iterations_for(std::ref(kernel), 10);
    EXPECT_GT(found, 60u) << seed;
    EXPECT_LT(found, 250u) << seed;
    EXPECT_LT(kernel.longest_us, 1000) << seed;
  }
}

TEST(Iterations, TriesAreFewAndBounded) {
  Kernel slow{20'000, 900};  // a software GPU
  EXPECT_GE(iterations_for(std::ref(slow), 200'000), 150u);
  EXPECT_LE(slow.longest_us, 400'000);
  EXPECT_LE(slow.tries, 8);
}

TEST(Iterations, ATargetBelowTheFixedCostIsOneIteration) {
  Kernel kernel{50, 1};
  EXPECT_EQ(iterations_for(std::ref(kernel), 20), 1u);
}

TEST(Iterations, ATimeThatDoesNotGrowIsAFailure) {
  Kernel kernel{5, 0, 0.5};
  EXPECT_THROW(iterations_for(std::ref(kernel), 100), Failure);
}

}  // namespace
}  // namespace gpuctl::bench
