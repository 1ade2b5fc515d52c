#include "kernels/matrices/neural_net.h"

#include "kernels/problem/approximations.h"
#include "kernels/problem/fused.h"
#include "kernels/problem/random.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::neural_net {
namespace {

constexpr std::uint32_t kTile = 16;
constexpr std::uint32_t kClasses = 10;

/// Weights between -1/2 and 1/2: most sums stay where the sigmoid is not flat.
Words random_weights(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Words words(count);
  for (std::uint32_t& word : words) word = std::bit_cast<std::uint32_t>(random.uniform_float() - 0.5f);
  return words;
}

std::vector<float> layer(const std::vector<float>& in, const std::vector<float>& weights,
                         const std::vector<float>& bias, std::size_t samples) {
  const std::size_t inputs = in.size() / samples;
  const std::size_t neurons = bias.size();
  std::vector<float> out;
  out.reserve(samples * neurons);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::vector<float> sums = bias;
    for (std::size_t i = 0; i < inputs; ++i) {
      add_scaled(sums.data(), in[sample * inputs + i], &weights[i * neurons], neurons);
    }
    for (const float sum : sums) out.push_back(1.0f / (1.0f + approximate_exp(-sum)));
  }
  return out;
}

}  // namespace

// Two hidden layers, and one with a neuron for each class. Inputs 1, 3, 5 are the layers' weights, 2, 4, 6 their
// biases.
Problem generate(const Extent& extent, std::uint64_t seed) {
  const auto [samples, inputs, hidden] = extent;
  const std::uint32_t sizes[] = {inputs, hidden, hidden, kClasses};
  Problem problem{.inputs = {random_floats(std::size_t{samples} * inputs, seed)},
                  .output_words = std::size_t{samples} * kClasses,
                  .poison = kPoison,
                  .scratch = {{std::size_t{samples} * hidden}, {std::size_t{samples} * hidden}}};
  const Argument places[] = {Argument::input(0), Argument::scratch(0), Argument::scratch(1), Argument::output()};
  for (std::uint32_t i = 0; i < 3; ++i) {
    problem.inputs.push_back(random_weights(std::size_t{sizes[i]} * sizes[i + 1], seed + 2 * i + 1));
    problem.inputs.push_back(random_weights(sizes[i + 1], seed + 2 * i + 2));
    problem.steps.push_back({"neuralLayer",
                             {divide_up(sizes[i + 1], kTile), divide_up(samples, kTile)},
                             {kTile, kTile},
                             {places[i], Argument::input(2 * i + 1), Argument::input(2 * i + 2), places[i + 1],
                              Argument::number(samples), Argument::number(sizes[i]), Argument::number(sizes[i + 1])}});
  }
  return problem;
}

Words reference(const Extent& extent, const Problem& problem) {
  std::vector<float> values = as_floats(problem.inputs[0]);
  for (std::size_t i = 1; i < problem.inputs.size(); i += 2) {
    values = layer(values, as_floats(problem.inputs[i]), as_floats(problem.inputs[i + 1]), extent.x);
  }
  return as_words(values);
}

}  // namespace gpuctl::bench::neural_net
