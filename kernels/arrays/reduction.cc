#include "kernels/arrays/reduction.h"

#include "kernels/problem/random.h"

namespace gpuctl::bench::reduction {
namespace {
constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kWordsPerBlock = kThreads * 4;
}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  const std::uint32_t blocks = divide_up(extent.x, kWordsPerBlock);
  return OneLaunch{
      .grid = {blocks},
      .block = {kThreads},
      .inputs = {random_words(extent.x, seed)},
      .output_words = blocks,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::output(), Argument::number(extent.x)},
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  Words sums(problem.output_words, 0);
  for (std::size_t i = 0; i < extent.x; ++i) sums[i / kWordsPerBlock] += problem.inputs[0][i];
  return sums;
}

}  // namespace gpuctl::bench::reduction
