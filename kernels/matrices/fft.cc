#include "kernels/matrices/fft.h"

#include <cmath>
#include <numbers>

#include "kernels/matrices/fft_radix8.h"
#include "kernels/problem/random.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::fft {
namespace {

constexpr std::uint32_t kPoints = 512;
constexpr std::uint32_t kThreads = kPoints / 8;

Words roots_of_one() {
  Words words;
  for (std::uint32_t k = 0; k < kPoints; ++k) {
    const double angle = -2 * std::numbers::pi * k / kPoints;
    words.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(std::cos(angle))));
    words.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(std::sin(angle))));
  }
  return words;
}

/// Eight points at first + j * stride, transformed; point k of the result multiplied by root k * root, unless null.
void transform(Complex* points, std::size_t first, std::size_t stride, const Complex* roots, std::size_t root) {
  Complex values[8];
  for (std::size_t j = 0; j < 8; ++j) values[j] = points[first + j * stride];
  transform8(values);
  points[first] = values[0];
  for (std::size_t k = 1; k < 8; ++k) {
    points[first + k * stride] = roots == nullptr ? values[k] : multiply(values[k], roots[root * k]);
  }
}

}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  const std::size_t words = std::size_t{extent.x} * kPoints * 2;
  return OneLaunch{
      .grid = {extent.x},
      .block = {kThreads},
      .inputs = {random_floats(words, seed), roots_of_one()},
      .output_words = words,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::input(1), Argument::output()},
  };
}

// In place: after the three rounds point (a, b, c) in base 8 is the result's (c, b, a).
Words reference(const Extent& extent, const Problem& problem) {
  const auto* roots = reinterpret_cast<const Complex*>(problem.inputs[1].data());
  Words out(problem.output_words);
  for (std::size_t t = 0; t < extent.x; ++t) {
    Complex points[kPoints];
    std::memcpy(points, &problem.inputs[0][t * kPoints * 2], sizeof points);
    for (std::size_t i = 0; i < 64; ++i) transform(points, i, 64, roots, i);
    for (std::size_t i = 0; i < 64; ++i) transform(points, i / 8 * 64 + i % 8, 8, roots, i % 8 * 8);
    for (std::size_t i = 0; i < 64; ++i) transform(points, i * 8, 1, nullptr, 0);
    Complex ordered[kPoints];
    for (std::size_t i = 0; i < kPoints; ++i) ordered[i % 8 * 64 + i / 8 % 8 * 8 + i / 64] = points[i];
    std::memcpy(&out[t * kPoints * 2], ordered, sizeof ordered);
  }
  return out;
}

}  // namespace gpuctl::bench::fft
