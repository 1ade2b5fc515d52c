#include "kernels/matrices/matrix_mul.h"

#include <bit>
#include <cstring>
#include <vector>

#include "kernels/problem/fused.h"
#include "kernels/problem/random.h"

namespace gpuctl::bench::matrix_mul {
namespace {
constexpr std::uint32_t kTile = 16;

std::vector<float> as_floats(const Words& words) {
  std::vector<float> floats(words.size());
  std::memcpy(floats.data(), words.data(), words.size() * sizeof(float));
  return floats;
}
}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  const auto [rows, columns, inner] = extent;
  return OneLaunch{
      .grid = {divide_up(columns, kTile), divide_up(rows, kTile)},
      .block = {kTile, kTile},
      .inputs = {random_floats(std::size_t{rows} * inner, seed), random_floats(std::size_t{inner} * columns, seed + 1)},
      .output_words = std::size_t{rows} * columns,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::input(1), Argument::output(), Argument::number(rows),
                    Argument::number(columns), Argument::number(inner)},
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  const auto [rows, columns, inner] = extent;
  const std::vector<float> b = as_floats(problem.inputs[1]);
  std::vector<float> product(std::size_t{rows} * columns, 0.0f);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t k = 0; k < inner; ++k) {
      const float scale = std::bit_cast<float>(problem.inputs[0][row * inner + k]);
      add_scaled(&product[row * columns], scale, &b[k * columns], columns);
    }
  }
  Words out(product.size());
  std::memcpy(out.data(), product.data(), product.size() * sizeof(float));
  return out;
}

}  // namespace gpuctl::bench::matrix_mul
