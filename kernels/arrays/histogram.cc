#include "kernels/arrays/histogram.h"

#include <algorithm>

#include "kernels/problem/random.h"

namespace gpuctl::bench::histogram {
namespace {
constexpr std::uint32_t kBins = 256;
constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kWordsPerThread = 16;
}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  return OneLaunch{
      .grid = {std::max(1u, divide_up(extent.x, kThreads * kWordsPerThread))},
      .block = {kThreads},
      .inputs = {random_words(extent.x, seed)},
      .output_words = kBins,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::output(), Argument::number(extent.x)},
      .once = true,
  };
}

Words reference(const Extent&, const Problem& problem) {
  Words bins(kBins, problem.poison);
  for (const std::uint32_t word : problem.inputs[0]) {
    for (const std::uint32_t shift : {0, 8, 16, 24}) ++bins[word >> shift & 0xff];
  }
  return bins;
}

}  // namespace gpuctl::bench::histogram
