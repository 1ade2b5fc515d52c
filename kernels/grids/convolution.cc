#include "kernels/grids/convolution.h"

#include "kernels/grids/convolution_taps.h"
#include "kernels/problem/fused.h"
#include "kernels/problem/random.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::convolution {
namespace {
constexpr std::uint32_t kPixels = 4;
constexpr Dim3 kRows = {32, 4};
constexpr Dim3 kColumns = {16, 8};
}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  const auto [wide, high, unused] = extent;
  const std::size_t pixels = std::size_t{wide} * high;
  const Argument across = Argument::number(wide);
  const Argument down = Argument::number(high);
  return {.inputs = {random_floats(pixels, seed)},
          .output_words = pixels,
          .poison = kPoison,
          .scratch = {{pixels}},
          .steps = {{"convolutionRows",
                     {divide_up(wide, kRows.x * kPixels), divide_up(high, kRows.y)},
                     kRows,
                     {Argument::input(0), Argument::scratch(0), across, down}},
                    {"convolutionColumns",
                     {divide_up(wide, kColumns.x), divide_up(high, kColumns.y * kPixels)},
                     kColumns,
                     {Argument::scratch(0), Argument::output(), across, down}}}};
}

// Taps outside the picture are left out below: a product of zero changes no sum of positive numbers.
Words reference(const Extent& extent, const Problem& problem) {
  const std::size_t wide = extent.x;
  const std::size_t high = extent.y;
  const std::vector<float> in = as_floats(problem.inputs[0]);
  std::vector<float> across(in.size());
  std::vector<float> padded(wide + 2 * kTapsRadius);
  for (std::size_t y = 0; y < high; ++y) {
    std::memcpy(&padded[kTapsRadius], &in[y * wide], wide * sizeof(float));
    for (std::size_t tap = 0; tap <= 2 * kTapsRadius; ++tap) {
      add_scaled(&across[y * wide], kTaps[tap], &padded[tap], wide);
    }
  }
  std::vector<float> out(in.size());
  for (std::size_t y = 0; y < high; ++y) {
    for (std::size_t tap = 0; tap <= 2 * kTapsRadius; ++tap) {
      if (y + tap < kTapsRadius || y + tap >= high + kTapsRadius) continue;
      add_scaled(&out[y * wide], kTaps[tap], &across[(y + tap - kTapsRadius) * wide], wide);
    }
  }
  return as_words(out);
}

}  // namespace gpuctl::bench::convolution
