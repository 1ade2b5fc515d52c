// Prices of options by the binomial method, one option a block. At step n the share has n + 1 possible prices, the
// nodes; the option's values there follow from those at step n + 1. A thread keeps the values of 16 neighboring nodes
// in registers and gets the next one, the first of the next thread, through shared memory. Two sets of these take
// turns, so one barrier a step is enough.
#include "kernels/finance/binomial_option.h"
#include "kernels/problem/approximations.h"
#include "kernels/problem/rounded.h"

using namespace gpuctl::bench;

namespace {
constexpr unsigned kThreads = 128;
constexpr unsigned kNodes = 16;
static_assert(kThreads * kNodes == kMostBinomialSteps + 1);

__device__ float value_at_expiry(const BinomialOption& option, int node, int steps) {
  const float price = multiply(option.price, approximate_exp(multiply(option.log_up, float(2 * node - steps))));
  return price > option.strike ? subtract(price, option.strike) : 0.0f;
}
}  // namespace

extern "C" __global__ void binomialOptions(const BinomialOption* options, float* out, unsigned steps) {
  __shared__ float firsts[2][kThreads + 1];
  const BinomialOption option = options[blockIdx.x];
  const unsigned first = threadIdx.x * kNodes;
  float values[kNodes];
#pragma unroll
  for (unsigned k = 0; k < kNodes; ++k) values[k] = value_at_expiry(option, int(first + k), int(steps));
  if (threadIdx.x < 2) firsts[threadIdx.x][kThreads] = 0.0f;
  for (unsigned nodes = steps; nodes != 0; --nodes) {
    float* exchanged = firsts[nodes % 2];
    exchanged[threadIdx.x] = values[0];
    __syncthreads();
    if (first < nodes) {
#pragma unroll
      for (unsigned k = 0; k < kNodes; ++k) {
        const float above = k + 1 < kNodes ? values[k + 1] : exchanged[threadIdx.x + 1];
        values[k] = multiply_add(option.up, above, multiply(option.down, values[k]));
      }
    }
  }
  if (threadIdx.x == 0) out[blockIdx.x] = values[0];
}
