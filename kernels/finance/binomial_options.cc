#include "kernels/finance/binomial_options.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/finance/binomial_option.h"
#include "kernels/problem/approximations.h"
#include "kernels/problem/fused.h"
#include "kernels/problem/random.h"

namespace gpuctl::bench::binomial_options {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr double kRate = 0.02;
constexpr double kVolatility = 0.3;
constexpr std::size_t kOptionWords = sizeof(BinomialOption) / sizeof(std::uint32_t);

/// e^x for small x, the same on every machine.
double exp_of_small(double x) {
  double sum = 1;
  for (int term = 16; term > 0; --term) sum = 1 + sum * x / term;
  return sum;
}

BinomialOption random_option(Random& random, std::uint32_t steps) {
  const auto between = [&](float low, float high) { return low + (high - low) * random.uniform_float(); };
  const float price = between(5, 30);
  const float strike = between(1, 60);
  const double step_years = double{between(0.25f, 5)} / steps;
  const double log_up = kVolatility * std::sqrt(step_years);
  const double up = exp_of_small(log_up);
  const double growth = exp_of_small(kRate * step_years);
  const double probability = (growth - 1 / up) / (up - 1 / up);
  return {price, strike, static_cast<float>(log_up), static_cast<float>(probability / growth),
          static_cast<float>((1 - probability) / growth)};
}

float price_of(const BinomialOption& option, std::uint32_t steps) {
  std::vector<float> values(std::size_t{steps} + 1);
  for (std::uint32_t node = 0; node <= steps; ++node) {
    const int ups = 2 * static_cast<int>(node) - static_cast<int>(steps);
    const float price = option.price * approximate_exp(option.log_up * static_cast<float>(ups));
    values[node] = price > option.strike ? price - option.strike : 0.0f;
  }
  std::vector<float> before(values.size());
  for (std::size_t nodes = steps; nodes != 0; --nodes) {
    for (std::size_t node = 0; node < nodes; ++node) before[node] = option.down * values[node];
    add_scaled(before.data(), option.up, &values[1], nodes);
    values.swap(before);
  }
  return values[0];
}

}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  Random random(seed);
  Words options(extent.x * kOptionWords);
  for (std::size_t i = 0; i < extent.x; ++i) {
    const BinomialOption option = random_option(random, extent.y);
    std::memcpy(&options[i * kOptionWords], &option, sizeof option);
  }
  return OneLaunch{
      .grid = {extent.x},
      .block = {kThreads},
      .inputs = {std::move(options)},
      .output_words = extent.x,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::output(), Argument::number(extent.y)},
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  Words out(extent.x);
  for (std::size_t i = 0; i < extent.x; ++i) {
    BinomialOption option;
    std::memcpy(&option, &problem.inputs[0][i * kOptionWords], sizeof option);
    out[i] = std::bit_cast<std::uint32_t>(price_of(option, extent.y));
  }
  return out;
}

}  // namespace gpuctl::bench::binomial_options
