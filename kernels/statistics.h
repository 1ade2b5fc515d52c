// Percentiles of samples.
#pragma once

#include <vector>

namespace gpuctl::bench {

struct Summary {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
  double mean = 0;
};

/// Nearest-rank percentiles: the smallest sample that at least that share of all samples does not exceed.
/// All zero when there are no samples.
Summary summarize(std::vector<double> samples);

}  // namespace gpuctl::bench
