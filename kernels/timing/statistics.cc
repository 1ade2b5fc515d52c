#include "kernels/timing/statistics.h"

#include <algorithm>
#include <numeric>

#include "base/percentile.h"

namespace gpuctl::bench {
Summary summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return Summary{
      .p50 = percentile(samples, 0.50),
      .p90 = percentile(samples, 0.90),
      .p99 = percentile(samples, 0.99),
      .max = samples.back(),
      .mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size()),
  };
}

}  // namespace gpuctl::bench
