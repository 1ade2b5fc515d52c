#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpuctl::bench {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

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
