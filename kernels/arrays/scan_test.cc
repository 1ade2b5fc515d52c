#include "kernels/arrays/scan.h"

#include <gtest/gtest.h>

namespace gpuctl::bench::scan {
namespace {

TEST(Scan, EachWordIsTheSumOfThoseBefore) {
  const Problem problem = generate({5000}, 3);
  const Words out = reference({5000}, problem);
  EXPECT_EQ(out[0], 0u);
  for (std::size_t i = 1; i < out.size(); ++i) ASSERT_EQ(out[i] - out[i - 1], problem.inputs[0][i - 1]);
}

}  // namespace
}  // namespace gpuctl::bench::scan
