#include "kernels/matrices/fft.h"

#include <gtest/gtest.h>

#include <complex>
#include <numbers>

#include "kernels/problem/words.h"

namespace gpuctl::bench::fft {
namespace {

TEST(Fft, IsNearTheSumInDoubles) {
  constexpr std::size_t kPoints = 512;
  const Problem problem = generate({2}, 3);
  const std::vector<float> in = as_floats(problem.inputs[0]);
  const std::vector<float> out = as_floats(reference({2}, problem));
  for (std::size_t t = 0; t < 2; ++t) {
    for (std::size_t k = 0; k < kPoints; ++k) {
      std::complex<double> sum = 0;
      for (std::size_t j = 0; j < kPoints; ++j) {
        const std::size_t at = 2 * (t * kPoints + j);
        sum += std::complex<double>(in[at], in[at + 1]) *
               std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % kPoints) / kPoints);
      }
      const std::size_t at = 2 * (t * kPoints + k);
      ASSERT_NEAR(out[at], sum.real(), 2e-4) << k;
      ASSERT_NEAR(out[at + 1], sum.imag(), 2e-4) << k;
    }
  }
}

}  // namespace
}  // namespace gpuctl::bench::fft
