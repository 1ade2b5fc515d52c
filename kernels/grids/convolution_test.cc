#include "kernels/grids/convolution.h"

#include <gtest/gtest.h>

#include "kernels/grids/convolution_taps.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::convolution {
namespace {

TEST(Convolution, IsNearTheSumInDoubles) {
  const Extent extent{30, 21};
  const Problem problem = generate(extent, 3);
  const std::vector<float> in = as_floats(problem.inputs[0]);
  const std::vector<float> out = as_floats(reference(extent, problem));
  for (int y = 0; y < 21; ++y) {
    for (int x = 0; x < 30; ++x) {
      double sum = 0;
      for (int j = -kTapsRadius; j <= kTapsRadius; ++j) {
        for (int i = -kTapsRadius; i <= kTapsRadius; ++i) {
          if (x + i < 0 || x + i >= 30 || y + j < 0 || y + j >= 21) continue;
          sum += double{kTaps[kTapsRadius + i]} * kTaps[kTapsRadius + j] * in[(y + j) * 30 + x + i];
        }
      }
      ASSERT_NEAR(out[y * 30 + x], sum, 1e-5);
    }
  }
}

}  // namespace
}  // namespace gpuctl::bench::convolution
