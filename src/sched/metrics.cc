#include "sched/metrics.h"

#include <algorithm>
#include <cmath>

namespace gpuctl::sched {

Metrics measure(std::span<const Served> jobs) {
  Metrics m;
  if (jobs.empty()) return m;
  const double n = static_cast<double>(jobs.size());
  for (const Served& job : jobs) {
    const double x = ntt(job);
    m.antt += x / n;
    m.stp += 1 / x;
    m.worst = std::max(m.worst, x);
  }
  double squares = 0;
  for (const Served& job : jobs) squares += (ntt(job) - m.antt) * (ntt(job) - m.antt);
  m.dntt = std::sqrt(squares / n);
  return m;
}

double percentile(std::vector<double>& values, double p) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = std::clamp(p, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - static_cast<double>(below));
}

Spread spread(std::span<const double> values) {
  Spread s;
  if (values.empty()) return s;
  for (const double v : values) s.mean += v / static_cast<double>(values.size());
  if (values.size() < 2) return s;
  double squares = 0;
  for (const double v : values) squares += (v - s.mean) * (v - s.mean);
  s.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return s;
}

}  // namespace gpuctl::sched
