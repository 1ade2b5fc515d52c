#include "kernels/searches/path_finder.h"

#include <algorithm>

#include "kernels/problem/random.h"

namespace gpuctl::bench::path_finder {
namespace {
constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kRowsPerLaunch = 20;
constexpr std::uint32_t kCosts = 10;
}  // namespace

// The row reached goes back and forth between the scratch buffer and the output, and ends in the output.
Problem generate(const Extent& extent, std::uint64_t seed) {
  const auto [columns, rows, unused] = extent;
  Words wall = random_words(std::size_t{columns} * rows, seed);
  for (std::uint32_t& cost : wall) cost = 1 + cost % kCosts;
  Problem problem{.inputs = {std::move(wall)}, .output_words = columns, .poison = kPoison};

  const std::uint32_t launches = std::max(1u, divide_up(rows - 1, kRowsPerLaunch));
  if (launches > 1) problem.scratch.push_back({columns});
  Argument from = Argument::input(0);  // begins with row 0
  for (std::uint32_t launch = 0; launch < launches; ++launch) {
    const std::uint32_t first = 1 + launch * kRowsPerLaunch;
    const std::uint32_t deep = std::min(kRowsPerLaunch, rows - first);
    const Argument to = (launches - launch) % 2 == 1 ? Argument::output() : Argument::scratch(0);
    problem.steps.push_back({.grid = {divide_up(columns, kThreads - 2 * deep)},
                             .block = {kThreads},
                             .arguments = {Argument::input(0), from, to, Argument::number(columns),
                                           Argument::number(first), Argument::number(deep)}});
    from = to;
  }
  return problem;
}

Words reference(const Extent& extent, const Problem& problem) {
  const std::size_t columns = extent.x;
  const Words& wall = problem.inputs[0];
  Words above(wall.begin(), wall.begin() + extent.x);
  Words reached(columns);
  for (std::size_t row = 1; row < extent.y; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      std::uint32_t least = above[column];
      if (column > 0) least = std::min(least, above[column - 1]);
      if (column + 1 < columns) least = std::min(least, above[column + 1]);
      reached[column] = least + wall[row * columns + column];
    }
    above.swap(reached);
  }
  return above;
}

}  // namespace gpuctl::bench::path_finder
