// How well a set of jobs was served, as FRS section V defines it (after Eyerman and Eeckhout).
#pragma once

#include <span>

#include "sched/instants.h"

namespace gpuctl::sched {

/// One finished job.
struct Served {
  Time alone{};       ///< T^SP: by itself on an idle device, greater than 0
  Time turnaround{};  ///< T^MP: from arrival to completion, greater than 0
};

/// Normalized turnaround time: 1 is as good as alone.
inline double ntt(const Served& job) {
  return static_cast<double>(job.turnaround.count()) / static_cast<double>(job.alone.count());
}

struct Metrics {
  double antt = 0;   ///< mean of the NTTs: responsiveness, less is better
  double dntt = 0;   ///< their standard deviation over all jobs (not a sample's): fairness, less is better
  double stp = 0;    ///< sum of 1 / NTT: throughput in devices of work, up to the number of jobs
  double worst = 0;  ///< greatest NTT
};

/// All 0 for no jobs.
Metrics measure(std::span<const Served> jobs);

/// Mean and standard deviation of a sample (n - 1; 0 for fewer than two).
struct Spread {
  double mean = 0, deviation = 0;
};
Spread spread(std::span<const double> values);

}  // namespace gpuctl::sched
