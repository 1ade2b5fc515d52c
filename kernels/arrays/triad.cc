#include "kernels/arrays/triad.h"

#include <bit>
#include <cmath>

#include "kernels/problem/random.h"

namespace gpuctl::bench::triad {
namespace {
constexpr std::uint32_t kThreads = 128;
constexpr float kScale = 1.75f;
}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  return OneLaunch{
      .grid = {divide_up(extent.x, kThreads)},
      .block = {kThreads},
      .inputs = {random_floats(extent.x, seed), random_floats(extent.x, seed + 1)},
      .output_words = extent.x,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::input(1), Argument::output(), Argument::real(kScale),
                    Argument::number(extent.x)},
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  Words out(extent.x);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float a = std::bit_cast<float>(problem.inputs[0][i]);
    const float b = std::bit_cast<float>(problem.inputs[1][i]);
    out[i] = std::bit_cast<std::uint32_t>(std::fma(kScale, b, a));
  }
  return out;
}

}  // namespace gpuctl::bench::triad
