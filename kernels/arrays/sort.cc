#include "kernels/arrays/sort.h"

#include <algorithm>
#include <numeric>

#include "kernels/problem/random.h"

namespace gpuctl::bench::sort {
namespace {
constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kStartsThreads = 1024;
constexpr std::uint32_t kTile = 1024;
constexpr std::uint32_t kKeyBits = 32;
constexpr std::uint32_t kDigitBits = 4;
constexpr std::uint32_t kDigits = 1u << kDigitBits;
}  // namespace

// Eight moves: the pairs end in the output. Keys repeat, so that a sort that is not stable shows.
Problem generate(const Extent& extent, std::uint64_t seed) {
  Words pairs = random_words(2 * std::size_t{extent.x}, seed);
  for (std::size_t i = 0; i + 2 < pairs.size(); i += 6) pairs[i + 2] = pairs[i];
  const std::uint32_t tiles = divide_up(extent.x, kTile);
  const std::uint32_t entries = tiles * kDigits;
  Problem problem{.inputs = {std::move(pairs)},
                  .output_words = 2 * std::size_t{extent.x},
                  .poison = kPoison,
                  .scratch = {{entries}, {2 * std::size_t{extent.x}}}};
  const Argument counts = Argument::scratch(0);
  const Argument count = Argument::number(extent.x);
  Argument from = Argument::input(0);
  for (std::uint32_t bit = 0; bit < kKeyBits; bit += kDigitBits) {
    const Argument shift = Argument::number(bit);
    const Argument to = bit / kDigitBits % 2 == 1 ? Argument::output() : Argument::scratch(1);
    problem.steps.push_back({"sortCount", {tiles}, {kThreads}, {from, counts, count, shift}});
    problem.steps.push_back({"sortStarts", {1}, {kStartsThreads}, {counts, Argument::number(entries)}, true});
    problem.steps.push_back({"sortMove", {tiles}, {kThreads}, {from, counts, to, count, shift}});
    from = to;
  }
  return problem;
}

Words reference(const Extent& extent, const Problem& problem) {
  const Words& pairs = problem.inputs[0];
  std::vector<std::uint32_t> order(extent.x);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t pair) { return pairs[2 * std::size_t{pair}]; });
  Words out;
  out.reserve(pairs.size());
  for (const std::size_t pair : order) {
    out.push_back(pairs[2 * pair]);
    out.push_back(pairs[2 * pair + 1]);
  }
  return out;
}

}  // namespace gpuctl::bench::sort
