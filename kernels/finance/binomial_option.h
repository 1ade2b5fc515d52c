// One option as the kernel binomialOptions gets it.
#pragma once

namespace gpuctl::bench {

/// A European call. In one time step the share goes up by a factor or down by its inverse.
struct BinomialOption {
  float price;  ///< of the share now
  float strike;
  float log_up;  ///< logarithm of that factor
  float up;      ///< discounted probability of a step up
  float down;    ///< and of a step down
};

inline constexpr unsigned kMostBinomialSteps = 2047;

}  // namespace gpuctl::bench
