#include "kernels/arrays/scan.h"

#include "kernels/problem/random.h"

namespace gpuctl::bench::scan {
namespace {
constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kTile = 2048;
}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  const std::uint32_t tiles = divide_up(extent.x, kTile);
  const Argument in = Argument::input(0);
  const Argument sums = Argument::scratch(0);
  const Argument count = Argument::number(extent.x);
  return {.inputs = {random_words(extent.x, seed)},
          .output_words = extent.x,
          .poison = kPoison,
          .scratch = {{tiles}},
          .steps = {
              {"scanReduce", {tiles}, {kThreads}, {in, sums, count}},
              {"scanTop", {1}, {kThreads}, {sums, Argument::number(tiles)}, true},
              {"scanBottom", {tiles}, {kThreads}, {in, sums, Argument::output(), count}},
          }};
}

Words reference(const Extent&, const Problem& problem) {
  Words out;
  out.reserve(problem.output_words);
  std::uint32_t sum = 0;
  for (const std::uint32_t word : problem.inputs[0]) {
    out.push_back(sum);
    sum += word;
  }
  return out;
}

}  // namespace gpuctl::bench::scan
