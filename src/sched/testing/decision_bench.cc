// Measures one decision, per policy: a report and the decision after it. Arguments: the number of jobs (default 1000),
// then the only policy to measure. Reports alternate between two kinds: a job arrives and the leading one completes, or
// the leader's slice ends. Prints the median in microseconds of the kind that takes longer, because some policies have
// nothing to decide in one of them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/random.h"
#include "sched/temporal/scheduler.h"

using namespace gpuctl::sched;
using gpuctl::Random;

namespace {

constexpr CapSM kDevice{132};
constexpr int kRounds = 3000;

Arrival draw(JobId id, Random& random) {
  return {.id = id,
          .owner = id % 97,
          .priority = static_cast<std::int32_t>(random.below(10)),
          .weight = static_cast<std::uint32_t>(1 + random.below(100)),
          .need = CapSM{static_cast<std::uint32_t>(1 + random.below(kDevice.count))},
          .predicted = Time{static_cast<std::int64_t>(50'000 + random.below(20'000'000))},
          .eviction = Time{30'000}};
}

void measure(const char* policy, std::size_t jobs) {
  Random random(1);
  Scheduler scheduler(std::move(*make_job_policy(policy)), kDevice);
  Time now{};
  JobId next = 0;
  for (; next < jobs; ++next) scheduler.arrive(draw(next, random), now += Time{1000});
  std::vector<double> took[2];
  std::vector<JobId> running;
  Time again = kNever;
  for (int i = 0; i < kRounds; ++i) {
    now = i % 2 && again != kNever && again > now ? again : now + Time{20'000};
    const bool renew = i % 2 == 0;
    const Arrival arrival = draw(next, random);
    const auto begin = std::chrono::steady_clock::now();
    if (renew) {
      scheduler.arrive(arrival, now);
      if (!running.empty()) scheduler.complete(running.front(), now);
    }
    JobDecision decision = scheduler.decide(now);
    const auto end = std::chrono::steady_clock::now();
    took[i % 2].push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    if (renew) {
      ++next;
      if (!running.empty()) running.erase(running.begin());
    }
    const std::vector<Grant> changed(decision.changed.begin(), decision.changed.end());
    for (const Grant& grant : changed) {
      std::erase(running, grant.job);
      if (grant.capsm.count == 0) scheduler.evicted(grant.job, now);
      if (grant.capsm.count == 0) continue;
      if (scheduler.state(grant.job) == JobState::to_run) scheduler.started(grant.job, now);
      running.push_back(grant.job);
    }
    again = scheduler.decide(now).again;
  }
  for (std::vector<double>& kind : took) std::sort(kind.begin(), kind.end());
  const std::vector<double>& slower = took[took[0][took[0].size() / 2] < took[1][took[1].size() / 2]];
  std::printf("%-16s median %6.2f us   p99 %6.2f us\n", policy, slower[slower.size() / 2],
              slower[slower.size() * 99 / 100]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t jobs = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
  std::printf("%zu jobs\n", jobs);
  for (const char* policy : {"fcfs", "hpf", "hpf:spatial", "ffs", "piv", "piv:protect_ms=50", "dprr", "sjf", "srt",
                             "rr", "cfs", "frs", "sim", "share"})
    if (argc < 3 || std::string_view(policy) == argv[2]) measure(policy, jobs);
}
