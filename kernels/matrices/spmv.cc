#include "kernels/matrices/spmv.h"

#include <bit>
#include <cmath>

#include "kernels/problem/random.h"

namespace gpuctl::bench::spmv {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr std::uint32_t kLanes = 32;
constexpr std::uint32_t kLongRows = 64;  ///< one row in so many is long
constexpr std::uint32_t kLonger = 8;     ///< and has about so many times the entries of the others

/// Where each row starts among the entries, and the number of entries. Lengths vary as those of real matrices do.
Words row_starts(const Extent& extent, Random& random) {
  Words starts(std::size_t{extent.x} + 1, 0);
  for (std::size_t row = 0; row < extent.x; ++row) {
    const std::uint64_t usual = random.bits() % (2 * extent.y + 1);
    const bool is_long = random.bits() % kLongRows == 0;
    starts[row + 1] = starts[row] + static_cast<std::uint32_t>(is_long ? usual * kLonger : usual);
  }
  return starts;
}

}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  Random random(seed);
  Words starts = row_starts(extent, random);
  Words columns(starts.back());
  for (std::uint32_t& column : columns) column = static_cast<std::uint32_t>(random.bits() % extent.x);
  return OneLaunch{
      .grid = {divide_up(std::uint64_t{extent.x} * kLanes, kThreads)},
      .block = {kThreads},
      .inputs = {random_floats(columns.size(), seed + 1), std::move(columns), std::move(starts),
                 random_floats(extent.x, seed + 2)},
      .output_words = extent.x,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::input(1), Argument::input(2), Argument::input(3), Argument::output(),
                    Argument::number(extent.x)},
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  const Words& values = problem.inputs[0];
  const Words& columns = problem.inputs[1];
  const Words& starts = problem.inputs[2];
  const Words& x = problem.inputs[3];
  Words out(extent.x);
  for (std::size_t row = 0; row < extent.x; ++row) {
    float sums[kLanes] = {};
    for (std::uint32_t i = starts[row]; i < starts[row + 1]; ++i) {
      float& sum = sums[(i - starts[row]) % kLanes];
      sum = std::fma(std::bit_cast<float>(values[i]), std::bit_cast<float>(x[columns[i]]), sum);
    }
    for (std::uint32_t half = kLanes / 2; half != 0; half /= 2) {
      for (std::uint32_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    out[row] = std::bit_cast<std::uint32_t>(sums[0]);
  }
  return out;
}

}  // namespace gpuctl::bench::spmv
