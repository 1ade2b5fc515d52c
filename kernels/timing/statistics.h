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

/// Percentiles by nearest rank (base/percentile.h). All zero when there are no samples.
Summary summarize(std::vector<double> samples);

}  // namespace gpuctl::bench
