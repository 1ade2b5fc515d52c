#include "kernels/particles/tpacf.h"

#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/particles/tpacf_bins.h"
#include "kernels/problem/native.h"
#include "kernels/problem/random.h"
#include "kernels/problem/rounded.h"

namespace gpuctl::bench::tpacf {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::size_t kClusters = 16;        ///< of observed points
constexpr float kClusterRadius = 1.0f / 64;  ///< one degree

struct Vector {
  float x, y, z;
};

Vector normalized(const Vector& v) {
  const float length = std::sqrt(v.x * v.x + v.y * v.y + v.z * v.z);
  return {v.x / length, v.y / length, v.z / length};
}

Vector random_direction(Random& random) {
  for (;;) {
    const auto coordinate = [&] { return 2.0f * random.uniform_float() - 1.0f; };
    const Vector v{coordinate(), coordinate(), coordinate()};
    const float square = v.x * v.x + v.y * v.y + v.z * v.z;
    if (square > 0.01f && square < 1.0f) return normalized(v);
  }
}

/// Half of the observed points are gathered in clusters.
Vector observed_point(Random& random, const std::array<Vector, kClusters>& clusters) {
  const Vector direction = random_direction(random);
  const std::uint64_t choice = random.bits() % (2 * kClusters);
  if (choice >= kClusters) return direction;
  const Vector& center = clusters[choice];
  return normalized({center.x + kClusterRadius * direction.x, center.y + kClusterRadius * direction.y,
                     center.z + kClusterRadius * direction.z});
}

struct Points {
  std::span<const std::uint32_t> x, y, z;
};

/// Adds the pairs of one point with points `from` to the end.
[[gnu::always_inline]] inline void count_pairs_of(const Vector& here, const Points& others, std::size_t from,
                                                  std::uint32_t* bins, std::uint32_t* counts) {
  const std::size_t count = others.x.size();
  for (std::size_t j = from; j < count; ++j) {
    const float cosine = multiply_add(
        here.x, std::bit_cast<float>(others.x[j]),
        multiply_add(here.y, std::bit_cast<float>(others.y[j]), here.z * std::bit_cast<float>(others.z[j])));
    std::uint32_t bin = 0;
    for (const float edge : kTpacfCosines) bin += cosine < edge ? 1 : 0;
    bins[j] = bin;
  }
  for (std::size_t j = from; j < count; ++j) ++counts[bins[j]];
}

BENCH_NATIVE void count_pairs_native(const Vector& here, const Points& others, std::size_t from, std::uint32_t* bins,
                                     std::uint32_t* counts) {
  count_pairs_of(here, others, from, bins, counts);
}

void count_pairs(const Vector& here, const Points& others, std::size_t from, std::uint32_t* bins,
                 std::uint32_t* counts) {
  if (has_native()) return count_pairs_native(here, others, from, bins, counts);
  count_pairs_of(here, others, from, bins, counts);
}

}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  const auto [points, random_catalogues, unused] = extent;
  Random random(seed);
  std::array<Vector, kClusters> clusters;
  for (Vector& center : clusters) center = random_direction(random);
  Words x, y, z;
  for (std::size_t i = 0; i < std::size_t{points} * (random_catalogues + 1); ++i) {
    const Vector point = i < points ? observed_point(random, clusters) : random_direction(random);
    x.push_back(std::bit_cast<std::uint32_t>(point.x));
    y.push_back(std::bit_cast<std::uint32_t>(point.y));
    z.push_back(std::bit_cast<std::uint32_t>(point.z));
  }
  const std::uint32_t blocks = 2 * random_catalogues + 1;
  return OneLaunch{
      .grid = {blocks},
      .block = {kThreads},
      .inputs = {std::move(x), std::move(y), std::move(z)},
      .output_words = std::size_t{blocks} * kTpacfBins,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::input(1), Argument::input(2), Argument::output(),
                    Argument::number(points), Argument::number(random_catalogues)},
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  const auto [points, random_catalogues, unused] = extent;
  const auto catalogue = [&, points = points](std::size_t number) {
    const auto part = [&](std::size_t input) {
      return std::span(problem.inputs[input]).subspan(number * points, points);
    };
    return Points{part(0), part(1), part(2)};
  };
  Words out(problem.output_words, 0);
  std::vector<std::uint32_t> bins(points);
  for (std::size_t block = 0; block < out.size() / kTpacfBins; ++block) {
    const bool same = block == 0 || block > random_catalogues;
    const std::size_t number = block <= random_catalogues ? block : block - random_catalogues;
    const Points first = catalogue(same ? number : 0);
    const Points second = catalogue(number);
    for (std::size_t i = 0; i < points; ++i) {
      const Vector here = {std::bit_cast<float>(first.x[i]), std::bit_cast<float>(first.y[i]),
                           std::bit_cast<float>(first.z[i])};
      count_pairs(here, second, same ? i + 1 : 0, bins.data(), &out[block * kTpacfBins]);
    }
  }
  return out;
}

}  // namespace gpuctl::bench::tpacf
