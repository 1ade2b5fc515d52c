#include "kernels/searches/particle_filter.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/problem/random.h"
#include "kernels/searches/particle_likelihood.h"

namespace gpuctl::bench::particle_filter {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr std::uint32_t kSumThreads = 256;
constexpr std::size_t kPixels = std::size_t{kFrameSide} * kFrameSide;
constexpr int kFirst = 20;  // the object's place in the first frame, both ways
constexpr int kRadius = 2;
constexpr std::uint32_t kBright = 190;
constexpr std::uint32_t kDark = 60;
constexpr std::uint32_t kNoise = 60;

Words video(std::uint32_t frames, std::uint64_t seed) {
  Words pixels = random_words(frames * kPixels, seed);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const int frame = static_cast<int>(i / kPixels);
    const int x = static_cast<int>(i % kFrameSide) - (kFirst + frame) % kFrameSide;
    const int y = static_cast<int>(i / kFrameSide % kFrameSide) - kFirst + frame / 2 % kFirst;
    const bool object = std::abs(x) + std::abs(y) <= kRadius;
    pixels[i] = pixels[i] % kNoise + (object ? kBright : kDark);
  }
  return pixels;
}

Words all_at(float place, std::size_t particles) {
  return Words(2 * particles, std::bit_cast<std::uint32_t>(place));
}

std::uint32_t weigh(const std::uint32_t* picture, Particle particle) {
  int sum = 0;
  int pixels = 0;
  for (int x = -kRadius; x <= kRadius; ++x) {
    for (int y = std::abs(x) - kRadius; y <= kRadius - std::abs(x); ++y) {
      const int column = pixel_of(particle.x + static_cast<float>(x));
      const int row = pixel_of(particle.y + static_cast<float>(y));
      sum += bright_rather_than_dark(static_cast<int>(picture[row * kFrameSide + column]));
      ++pixels;
    }
  }
  return weight_of(sum, pixels);
}

}  // namespace

// Scratch buffer 0 holds the moved particles, 1 their weights and then the sums of these. Drawn particles are the
// output.
Problem generate(const Extent& extent, std::uint64_t seed) {
  const auto [particles, frames, unused] = extent;
  const Argument count = Argument::number(particles);
  const Dim3 grid = {divide_up(particles, kThreads)};
  const Argument moved = Argument::scratch(0);
  const Argument weights = Argument::scratch(1);
  Problem problem{
      .inputs = {video(frames, seed), random_words(particles, seed + 1), all_at(kFirst, particles)},
      .output_words = 2 * std::size_t{particles},
      .poison = kPoison,
      .scratch = {{2 * std::size_t{particles}}, {particles}},
  };
  for (std::uint32_t frame = 0; frame < frames; ++frame) {
    const Argument from = frame == 0 ? Argument::input(2) : Argument::output();
    problem.steps.push_back(
        {"particleMove",
         grid,
         {kThreads},
         {Argument::input(0), Argument::input(1), from, moved, weights, count, Argument::number(frame)}});
    problem.steps.push_back({"particleSum", {1}, {kSumThreads}, {weights, count}, true});
    problem.steps.push_back({"particleDraw", grid, {kThreads}, {weights, moved, Argument::output(), count}});
  }
  return problem;
}

Words reference(const Extent& extent, const Problem& problem) {
  const std::size_t count = extent.x;
  std::vector<Particle> particles(count, Particle{kFirst, kFirst});
  for (std::uint32_t frame = 0; frame < extent.y; ++frame) {
    Words sums(count);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      particles[i] = moved(particles[i], problem.inputs[1][i], frame);
      sums[i] = sum += weigh(&problem.inputs[0][frame * kPixels], particles[i]);
    }
    const std::vector<Particle> from = particles;
    std::size_t drawn = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t share = (2 * i + 1) * std::uint64_t{sum} / (2 * count);
      while (sums[drawn] <= share) ++drawn;  // the shares rise, so the walk goes on where it stopped
      particles[i] = from[drawn];
    }
  }
  Words out;
  for (const Particle& particle : particles) {
    out.push_back(std::bit_cast<std::uint32_t>(particle.x));
    out.push_back(std::bit_cast<std::uint32_t>(particle.y));
  }
  return out;
}

}  // namespace gpuctl::bench::particle_filter
