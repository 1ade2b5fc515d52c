// One layer of a neural network for a batch of samples: out = sigmoid(in * weights + bias). Tiles of 16 x 16 as in a
// matrix product; a neuron adds up its inputs in rising order, beginning with its bias.
#include "kernels/problem/approximations.h"

namespace {
using namespace gpuctl::bench;

constexpr unsigned kTile = 16;
}  // namespace

extern "C" __global__ void neuralLayer(const float* in, const float* weights, const float* bias, float* out,
                                       unsigned samples, unsigned inputs, unsigned neurons) {
  __shared__ float in_tile[kTile][kTile];
  __shared__ float weight_tile[kTile][kTile];
  const unsigned sample = blockIdx.y * kTile + threadIdx.y;
  const unsigned neuron = blockIdx.x * kTile + threadIdx.x;
  float sum = neuron < neurons ? bias[neuron] : 0.0f;
  for (unsigned first = 0; first < inputs; first += kTile) {
    const unsigned column = first + threadIdx.x;
    const unsigned row = first + threadIdx.y;
    if (sample < samples && column < inputs) in_tile[threadIdx.y][threadIdx.x] = in[sample * inputs + column];
    if (row < inputs && neuron < neurons) weight_tile[threadIdx.y][threadIdx.x] = weights[row * neurons + neuron];
    __syncthreads();
    const unsigned depth = min(kTile, inputs - first);
    for (unsigned k = 0; k < depth; ++k) {
      sum = multiply_add(in_tile[threadIdx.y][k], weight_tile[k][threadIdx.x], sum);
    }
    __syncthreads();
  }
  if (sample >= samples || neuron >= neurons) return;
  out[sample * neurons + neuron] = divide(1.0f, add(1.0f, approximate_exp(-sum)));
}
