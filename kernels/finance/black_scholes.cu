// Prices of European options, one option a thread: out holds all call prices, then all put prices.
#include "kernels/finance/black_scholes_formula.h"

using namespace gpuctl::bench;

extern "C" __global__ void blackScholes(const float* __restrict__ prices, const float* __restrict__ strikes,
                                        const float* __restrict__ years, float* out, float rate, float volatility,
                                        unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const OptionPrices option = option_prices(prices[i], strikes[i], years[i], rate, volatility);
  out[i] = option.call;
  out[count + i] = option.put;
}
