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
