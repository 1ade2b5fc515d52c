#include "kernels/arrays/triad.h"

#include <gtest/gtest.h>

#include <bit>

namespace gpuctl::bench::triad {
namespace {

TEST(Triad, IsOneVectorPlusAScaledOne) {
  const Problem problem = generate({100}, 3);
  const Words out = reference({100}, problem);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double a = std::bit_cast<float>(problem.inputs[0][i]);
    const double b = std::bit_cast<float>(problem.inputs[1][i]);
    EXPECT_EQ(std::bit_cast<float>(out[i]), static_cast<float>(a + 1.75 * b));
  }
}

}  // namespace
}  // namespace gpuctl::bench::triad
