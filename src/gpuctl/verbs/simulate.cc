#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <ostream>

#include "gpuctl/line/verb.h"
#include "gpuctl/simulate/simulation.h"
#include "gpuctl/simulate/workload_file.h"
#include "gpuctl/text/progress.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"
#include "ipc/codec.h"
#include "sched/policy.h"

namespace gpuctl::cli {

namespace {

struct SimulateOptions {
  std::string workload, policies, seeds;  ///< seeds empty: as the workload says
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string figure(double v) {
  char text[32];
  std::snprintf(text, sizeof text, v != 0 && std::abs(v) < 0.1 ? "%.4f" : v < 100 ? "%.2f" : "%.0f", v);
  return text;
}

std::string figure(const sched::Spread& spread) {
  return figure(spread.mean) + " +- " + figure(spread.deviation);
}

void print_text(const sched::Workload& workload, const std::vector<PolicySummary>& summaries, std::ostream& out) {
  using Align = Table::Align;
  if (!workload.title.empty()) out << printable(workload.title) << "\n\n";
  Table table({{"policy"},
               {"ANTT", Align::right},
               {"DNTT", Align::right},
               {"STP", Align::right},
               {"worst NTT", Align::right},
               {"p50 ms", Align::right},
               {"p99 ms", Align::right},
               {"evictions", Align::right},
               {"lost %", Align::right}});
  for (const PolicySummary& s : summaries)
    table.add_row({s.policy, figure(s.antt), figure(s.dntt), figure(s.stp), figure(s.worst), figure(s.p50_ms),
                   figure(s.p99_ms), figure(s.evictions), figure(s.lost * 100)});
  for (const std::string& line : table.lines()) out << line << '\n';

  constexpr std::size_t kMostApplications = 40;  // as many as a screen shows
  if (workload.applications.size() > kMostApplications) return;
  std::vector<Table::Column> columns{{"NTT (share of the device)"}};
  for (const PolicySummary& s : summaries) columns.push_back({s.policy, Align::right});
  Table applications(std::move(columns));
  for (std::size_t a = 0; a < workload.applications.size(); ++a) {
    std::vector<std::string> cells{printable(workload.applications[a].name)};
    for (const PolicySummary& s : summaries) {
      const ApplicationSummary& app = s.applications[a];
      cells.push_back((app.launches == 0 ? "-" : figure(app.ntt)) + " (" + figure(app.share * 100) + " %)");
    }
    applications.add_row(std::move(cells));
  }
  out << '\n';
  for (const std::string& line : applications.lines()) out << line << '\n';
}

Outcome<int> run(const SimulateOptions& options, Context& context) {
  constexpr std::int64_t kMostSeeds = 1'000'000;
  const std::optional<std::int64_t> seeds = parse_integer(options.seeds);
  if (!options.seeds.empty() && (!seeds || *seeds < 1 || *seeds > kMostSeeds))
    return usage("--seeds: '" + options.seeds + "' is not a whole number from 1 to " + std::to_string(kMostSeeds));
  const auto workload = read_workload(options.workload);
  if (!workload) return usage(workload.error().message);
  const std::vector<std::string> policies = split(options.policies);
  for (const std::string& policy : policies)
    if (const auto made = sched::make_job_policy(policy); !made) return usage("--policy: " + made.error().message);

  std::vector<PolicySummary> summaries;
  {
    Progress progress(context.err);
    const std::uint32_t count = seeds ? static_cast<std::uint32_t>(*seeds) : workload->seeds;
    for (const std::string& policy : policies) {
      auto summary = summarize(*workload, policy, count, [&](std::uint32_t seed) {
        progress.say("simulating " + policy + ": run " + std::to_string(seed) + " of " + std::to_string(count));
      });
      if (!summary) return usage(options.workload + ": " + policy + ": " + summary.error().message);
      summaries.push_back(std::move(*summary));
    }
  }

  if (context.json) {
    boost::json::array list;
    for (const PolicySummary& summary : summaries) list.push_back(to_json(summary));
    context.out << boost::json::serialize(list) << '\n';
  } else {
    print_text(*workload, summaries, context.out);
  }
  return kExitOk;
}

}  // namespace

Action declare_simulate(Arguments& arguments) {
  auto options = std::make_shared<SimulateOptions>();
  arguments.add("WORKLOAD", options->workload, "TOML file that describes devices and applications").required();
  arguments
      .add("--policy", options->policies,
           "Policies to compare, each NAME or NAME:OPTION=VALUE:...; names: " + sched::policy_names())
      .value("POLICY[,POLICY...]")
      .required();
  arguments.add("--seeds", options->seeds, "Runs per policy, each with other random numbers (as the workload says)")
      .value("N");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace gpuctl::cli
