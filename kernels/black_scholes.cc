#include "black_scholes.h"

#include <bit>

#include "black_scholes_formula.h"
#include "random.h"

namespace gpuctl::bench {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr float kRate = 0.02f;
constexpr float kVolatility = 0.3f;

Words random_between(float low, float high, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Words words(count);
  for (std::uint32_t& word : words) word = std::bit_cast<std::uint32_t>(low + (high - low) * random.next_float());
  return words;
}

}  // namespace

Problem generate_black_scholes(const Extent& extent, std::uint64_t seed) {
  return OneLaunch{
      .grid = {divide_up(extent.x, kThreads)},
      .block = {kThreads},
      .inputs = {random_between(5, 30, extent.x, seed), random_between(1, 100, extent.x, seed + 1),
                 random_between(0.25f, 10, extent.x, seed + 2)},
      .output_words = std::size_t{extent.x} * 2,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::input(1), Argument::input(2), Argument::output(),
                    Argument::real(kRate), Argument::real(kVolatility), Argument::number(extent.x)},
  };
}

Words reference_black_scholes(const Extent& extent, const Problem& problem) {
  const auto at = [&](std::size_t input, std::size_t i) { return std::bit_cast<float>(problem.inputs[input][i]); };
  Words out(std::size_t{extent.x} * 2);
  for (std::size_t i = 0; i < extent.x; ++i) {
    const OptionPrices option = black_scholes(at(0, i), at(1, i), at(2, i), kRate, kVolatility);
    out[i] = std::bit_cast<std::uint32_t>(option.call);
    out[extent.x + i] = std::bit_cast<std::uint32_t>(option.put);
  }
  return out;
}

}  // namespace gpuctl::bench
