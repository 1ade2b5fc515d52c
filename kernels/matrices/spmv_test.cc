#include "kernels/matrices/spmv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

namespace gpuctl::bench::spmv {
namespace {

TEST(Spmv, RowsAreNearTheProductInDoubles) {
  const Extent extent{500, 30};
  const Problem problem = generate(extent, 3);
  const Words out = reference(extent, problem);
  const Words& starts = problem.inputs[2];
  for (std::size_t row = 0; row < out.size(); ++row) {
    double sum = 0;
    for (std::size_t i = starts[row]; i < starts[row + 1]; ++i) {
      sum += double{std::bit_cast<float>(problem.inputs[0][i])} *
             std::bit_cast<float>(problem.inputs[3][problem.inputs[1][i]]);
    }
    ASSERT_NEAR(std::bit_cast<float>(out[row]), sum, 1e-4) << row;
  }
}

// Empty rows, and rows of many turns of a warp.
TEST(Spmv, RowsDifferInLength) {
  const Problem problem = generate({2000, 30}, 3);
  const Words& starts = problem.inputs[2];
  std::uint32_t shortest = ~0u;
  std::uint32_t longest = 0;
  for (std::size_t row = 0; row + 1 < starts.size(); ++row) {
    shortest = std::min(shortest, starts[row + 1] - starts[row]);
    longest = std::max(longest, starts[row + 1] - starts[row]);
  }
  EXPECT_EQ(shortest, 0u);
  EXPECT_GT(longest, 300u);
}

}  // namespace
}  // namespace gpuctl::bench::spmv
