#include "kernels/matrices/neural_net.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/problem/words.h"

namespace gpuctl::bench::neural_net {
namespace {

TEST(NeuralNet, ActivationsAreNearThoseInDoubles) {
  const Extent extent{7, 33, 19};
  const Problem problem = generate(extent, 3);
  const std::vector<float> out = as_floats(reference(extent, problem));
  for (std::size_t sample = 0; sample < extent.x; ++sample) {
    const std::vector<float> in = as_floats(problem.inputs[0]);
    const auto first = in.begin() + static_cast<std::ptrdiff_t>(sample * extent.y);
    std::vector<double> values(first, first + extent.y);
    for (std::size_t layer = 0; layer < 3; ++layer) {
      const std::vector<float> weights = as_floats(problem.inputs[1 + 2 * layer]);
      const std::vector<float> bias = as_floats(problem.inputs[2 + 2 * layer]);
      std::vector<double> next;
      for (std::size_t neuron = 0; neuron < bias.size(); ++neuron) {
        double sum = bias[neuron];
        for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i * bias.size() + neuron];
        next.push_back(1 / (1 + std::exp(-sum)));
      }
      values = next;
    }
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(out[sample * values.size() + i], values[i], 1e-5);
  }
}

}  // namespace
}  // namespace gpuctl::bench::neural_net
