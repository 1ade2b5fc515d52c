// A workload under one policy, over several seeds, and what is reported of it.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "sched/simulator/simulate.h"

namespace gpuctl::cli {

struct ApplicationSummary {
  std::string name;
  std::uint64_t launches = 0;
  double ntt = 0;                 ///< mean over launches and seeds
  double p50_ms = 0, p99_ms = 0;  ///< turnaround, over launches and seeds
  double share = 0;               ///< of the devices' time; mean over the seeds
  double evictions = 0;           ///< per seed
};

struct PrioritySummary {
  std::int32_t priority = 0;
  std::uint64_t launches = 0, evictions = 0;
};

/// Its members are the figures of one row of the report.
struct PolicySummary {
  std::string policy;
  std::uint32_t seeds = 0;
  sched::Spread antt, dntt, stp;  ///< over the seeds
  double dntt_averaged = 0;       ///< of the applications' mean turnarounds over all seeds
  double stp_averaged = 0;
  double worst = 0;                                   ///< greatest NTT
  double p50_ms = 0, p99_ms = 0;                      ///< turnaround
  double launches = 0, evictions = 0, decisions = 0;  ///< per seed
  double lost = 0;                                    ///< fraction of the devices' time lost to evictions, dispatches
  double end_ms = 0;                                  ///< mean end of the last launch
  std::vector<ApplicationSummary> applications;
  std::vector<PrioritySummary> priorities;  ///< ascending
};

/// `policy` was accepted by make_job_policy. Seeds are 1, 2, ...; `begin` is called with each. An error where there are
/// too many launches.
Result<PolicySummary> summarize(const sched::Workload& workload, const std::string& policy, std::uint32_t seeds,
                                const std::function<void(std::uint32_t)>& begin);

boost::json::object to_json(const PolicySummary& summary);

}  // namespace gpuctl::cli
