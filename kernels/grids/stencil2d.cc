#include "kernels/grids/stencil2d.h"

#include "kernels/problem/random.h"
#include "kernels/problem/rounded.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::stencil2d {
namespace {
constexpr std::uint32_t kWide = 32;
constexpr std::uint32_t kHigh = 8;
constexpr float kCenter = 0.2f;
constexpr float kBeside = 0.15f;
constexpr float kCorner = 0.05f;
}  // namespace

// The grid goes back and forth between the scratch buffer and the output, and ends in the output.
Problem generate(const Extent& extent, std::uint64_t seed) {
  const auto [columns, rows, launches] = extent;
  const std::size_t cells = std::size_t{columns} * rows;
  Problem problem{.inputs = {random_floats(cells, seed)}, .output_words = cells, .poison = kPoison};
  if (launches > 1) problem.scratch.push_back({cells});
  Argument from = Argument::input(0);
  for (std::uint32_t launch = 0; launch < launches; ++launch) {
    const Argument to = (launches - launch) % 2 == 1 ? Argument::output() : Argument::scratch(0);
    problem.steps.push_back({.grid = {divide_up(columns, kWide), divide_up(rows, kHigh)},
                             .block = {kWide, kHigh},
                             .arguments = {from, to, Argument::number(columns), Argument::number(rows)}});
    from = to;
  }
  return problem;
}

Words reference(const Extent& extent, const Problem& problem) {
  const auto [columns, rows, launches] = extent;
  std::vector<float> from = as_floats(problem.inputs[0]);
  std::vector<float> to = from;
  for (std::uint32_t launch = 0; launch < launches; ++launch) {
    for (std::size_t y = 1; y + 1 < rows; ++y) {
      const float* above = &from[(y - 1) * columns];
      const float* here = &from[y * columns];
      const float* below = &from[(y + 1) * columns];
      for (std::size_t x = 1; x + 1 < columns; ++x) {
        const float beside = (above[x] + below[x]) + (here[x - 1] + here[x + 1]);
        const float corners = (above[x - 1] + above[x + 1]) + (below[x - 1] + below[x + 1]);
        to[y * columns + x] = multiply_add(corners, kCorner, multiply_add(beside, kBeside, here[x] * kCenter));
      }
    }
    from.swap(to);
  }
  return as_words(from);
}

}  // namespace gpuctl::bench::stencil2d
