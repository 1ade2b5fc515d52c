#include "kernels/finance/black_scholes.h"

#include <bit>
#include <vector>

#include "kernels/finance/black_scholes_formula.h"
#include "kernels/problem/native.h"
#include "kernels/problem/random.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::black_scholes {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr float kRate = 0.02f;
constexpr float kVolatility = 0.3f;

Words random_between(float low, float high, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Words words(count);
  for (std::uint32_t& word : words) word = std::bit_cast<std::uint32_t>(low + (high - low) * random.uniform_float());
  return words;
}

[[gnu::always_inline]] inline void price_options(const float* prices, const float* strikes, const float* years,
                                                 float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const OptionPrices option = option_prices(prices[i], strikes[i], years[i], kRate, kVolatility);
    out[i] = option.call;
    out[count + i] = option.put;
  }
}

BENCH_NATIVE void price_native(const float* prices, const float* strikes, const float* years, float* out,
                               std::size_t count) {
  price_options(prices, strikes, years, out, count);
}

void price_portable(const float* prices, const float* strikes, const float* years, float* out, std::size_t count) {
  price_options(prices, strikes, years, out, count);
}

}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
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

Words reference(const Extent& extent, const Problem& problem) {
  const std::vector<float> prices = as_floats(problem.inputs[0]);
  const std::vector<float> strikes = as_floats(problem.inputs[1]);
  const std::vector<float> years = as_floats(problem.inputs[2]);
  std::vector<float> out(std::size_t{extent.x} * 2);
  const auto price = has_native() ? price_native : price_portable;
  price(prices.data(), strikes.data(), years.data(), out.data(), extent.x);
  return as_words(out);
}

}  // namespace gpuctl::bench::black_scholes
