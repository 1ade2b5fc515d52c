#include "gpuctl/simulate/simulation.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <map>

#include "base/percentile.h"

namespace gpuctl::cli {

namespace {

using sched::Time;

constexpr std::size_t kMostLaunchesOfSeeds = 10 * sched::kMostLaunches;

double ms(Time t) {
  return static_cast<double>(t.count()) * 1e-6;
}

}  // namespace

Result<PolicySummary> summarize(const sched::Workload& workload, const std::string& policy, std::uint32_t seeds,
                                const std::function<void(std::uint32_t)>& begin) {
  PolicySummary summary;
  summary.policy = policy;
  summary.seeds = seeds;
  const auto maker = [&](const sched::PolicyInputs& inputs) { return *sched::make_job_policy(policy, inputs); };
  const std::size_t n = workload.applications.size();
  std::vector<double> antt, dntt, stp, turnarounds;
  std::vector<std::vector<double>> per_application(n);
  std::vector<double> alone(n), shared(n);
  std::map<std::int32_t, PrioritySummary> priorities;
  std::size_t kept = 0;  // launches of all seeds
  summary.applications.resize(n);
  for (std::size_t a = 0; a < n; ++a) summary.applications[a].name = workload.applications[a].name;

  for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
    begin(seed);
    const sched::Outcome outcome = simulate(workload, maker, seed);
    if (outcome.too_many)
      return fail("more than " + std::to_string(sched::kMostLaunches) +
                  " launches in one run: lower repeat, instances or arrivals.until_ms");
    kept += outcome.launches.size();
    if (kept > kMostLaunchesOfSeeds)
      return fail("more than " + std::to_string(kMostLaunchesOfSeeds) + " launches in all runs: lower --seeds");
    const sched::Metrics metrics = measure(outcome);
    antt.push_back(metrics.antt);
    dntt.push_back(metrics.dntt);
    stp.push_back(metrics.stp);
    summary.worst = std::max(summary.worst, metrics.worst);
    summary.launches += static_cast<double>(outcome.launches.size()) / seeds;
    summary.evictions += static_cast<double>(outcome.evictions) / seeds;
    summary.decisions += static_cast<double>(outcome.decisions) / seeds;
    summary.end_ms += ms(outcome.end) / seeds;
    const double whole = std::max(ms(outcome.end) * 1e-3, 1e-9) * workload.capsm.count * workload.devices;
    summary.lost += outcome.lost / whole / seeds;
    for (std::size_t a = 0; a < n; ++a) summary.applications[a].share += outcome.held[a] / whole / seeds;
    for (const sched::Launch& launch : outcome.launches) {
      const double turnaround = ms(launch.finished - launch.arrived);
      ApplicationSummary& app = summary.applications[launch.application];
      ++app.launches;
      app.ntt += turnaround / ms(launch.alone);
      app.evictions += static_cast<double>(launch.evictions) / seeds;
      per_application[launch.application].push_back(turnaround);
      alone[launch.application] += ms(launch.alone);
      shared[launch.application] += turnaround;
      PrioritySummary& priority = priorities[launch.priority];
      priority.priority = launch.priority;
      ++priority.launches;
      priority.evictions += launch.evictions;
    }
  }

  std::vector<sched::Served> averaged;
  for (std::size_t a = 0; a < n; ++a) {
    ApplicationSummary& app = summary.applications[a];
    if (app.launches == 0) continue;
    app.ntt /= static_cast<double>(app.launches);
    turnarounds.insert(turnarounds.end(), per_application[a].begin(), per_application[a].end());
    std::ranges::sort(per_application[a]);
    app.p50_ms = gpuctl::percentile(per_application[a], 0.5);
    app.p99_ms = gpuctl::percentile(per_application[a], 0.99);
    const double count = static_cast<double>(app.launches);
    averaged.push_back({Time{static_cast<std::int64_t>(alone[a] / count * 1e6)},
                        Time{static_cast<std::int64_t>(shared[a] / count * 1e6)}});
  }
  const sched::Metrics of_means = sched::measure(averaged);
  summary.dntt_averaged = of_means.dntt;
  summary.stp_averaged = of_means.stp;
  summary.antt = sched::spread(antt);
  summary.dntt = sched::spread(dntt);
  summary.stp = sched::spread(stp);
  std::ranges::sort(turnarounds);
  summary.p50_ms = gpuctl::percentile(turnarounds, 0.5);
  summary.p99_ms = gpuctl::percentile(turnarounds, 0.99);
  for (const auto& [priority, row] : priorities) summary.priorities.push_back(row);
  return summary;
}

boost::json::object to_json(const PolicySummary& s) {
  boost::json::array applications, priorities;
  for (const ApplicationSummary& app : s.applications)
    applications.push_back({{"name", app.name},
                            {"launches", app.launches},
                            {"ntt", app.ntt},
                            {"p50_ms", app.p50_ms},
                            {"p99_ms", app.p99_ms},
                            {"share", app.share},
                            {"evictions", app.evictions}});
  for (const PrioritySummary& p : s.priorities)
    priorities.push_back({{"priority", p.priority}, {"launches", p.launches}, {"evictions", p.evictions}});
  return {{"policy", s.policy},
          {"seeds", s.seeds},
          {"antt", s.antt.mean},
          {"dntt", s.dntt.mean},
          {"stp", s.stp.mean},
          {"spread", {{"antt", s.antt.deviation}, {"dntt", s.dntt.deviation}, {"stp", s.stp.deviation}}},
          {"averaged", {{"dntt", s.dntt_averaged}, {"stp", s.stp_averaged}}},
          {"worst_ntt", s.worst},
          {"p50_ms", s.p50_ms},
          {"p99_ms", s.p99_ms},
          {"launches", s.launches},
          {"evictions", s.evictions},
          {"decisions", s.decisions},
          {"lost", s.lost},
          {"end_ms", s.end_ms},
          {"applications", std::move(applications)},
          {"priorities", std::move(priorities)}};
}

}  // namespace gpuctl::cli
