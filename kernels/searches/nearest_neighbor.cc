#include "kernels/searches/nearest_neighbor.h"

#include <bit>
#include <cmath>

#include "kernels/problem/random.h"

namespace gpuctl::bench::nearest_neighbor {
namespace {
constexpr std::uint32_t kThreads = 256;
constexpr float kLatitude = 30.25f;
constexpr float kLongitude = 89.5f;
}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  Random random(seed);
  Words places(std::size_t{extent.x} * 2);
  for (std::size_t i = 0; i < extent.x; ++i) {
    places[2 * i] = std::bit_cast<std::uint32_t>(random.uniform_float() * 180.0f - 90.0f);
    places[2 * i + 1] = std::bit_cast<std::uint32_t>(random.uniform_float() * 360.0f);
  }
  return OneLaunch{
      .grid = {divide_up(extent.x, kThreads)},
      .block = {kThreads},
      .inputs = {std::move(places)},
      .output_words = extent.x,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::output(), Argument::real(kLatitude), Argument::real(kLongitude),
                    Argument::number(extent.x)},
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  Words out(extent.x);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float north = kLatitude - std::bit_cast<float>(problem.inputs[0][2 * i]);
    const float east = kLongitude - std::bit_cast<float>(problem.inputs[0][2 * i + 1]);
    out[i] = std::bit_cast<std::uint32_t>(std::sqrt(std::fma(north, north, east * east)));
  }
  return out;
}

}  // namespace gpuctl::bench::nearest_neighbor
