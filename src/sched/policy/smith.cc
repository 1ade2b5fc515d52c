// smith: our own. Minimizes the sum of the p-th powers of the slowdowns (p = power). A delay of dt raises a job's part
// of that sum by p IS^(p-1) dt / T_e, and running the job occupies the device for T_r. So, by Smith's rule for weighted
// completion times, the job with the greatest
//   IS^(p-1) / (T_e T_r)
// comes first. p = 1 is the most responsive order there is for predicted durations. With a large p the slowest job
// alone counts, as in frs. In between, a job that is slow *and* nearly done goes first. The policy decides again every
// quantum_ms, because slowdowns grow while jobs wait. It keeps a running job while the gain is below the cost of
// evicting it. All launches of an owner since it last had nothing to run count as one job, of which as much is expected
// to be left as there has been. A slowdown counts times the owner's weight.
//
// Good at: responsiveness close to that of srt, with slowdowns more even than those of frs (docs/design/simulator.md
// has the figures). For p > 1 no job starves, because IS grows without bound.
// Bad at: priorities, which it does not know. Like srt and frs it depends on predicted durations.
#include <algorithm>
#include <bit>

#include "sched/policy/owners.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
double raise(double base, int power) {
  double result = 1;
  for (; power > 0; power >>= 1, base *= base)
    if (power & 1) result *= base;
  return result;
}

class Smith : public JobPolicy {
 public:
  Smith(int power, Time quantum) : power_(power), quantum_(quantum) {}
  void arrived(Job& job, Time now) override {
    owners_.arrived(job);
    Burst& burst = Owners<Burst>::of(job);
    burst.arrived(now);
    job.mark[1] = std::bit_cast<std::int64_t>(1 / static_cast<double>((burst.alone + job.predicted).count()));
  }
  void left(const Job& job, Time now) override {
    Owners<Burst>::of(job).left(job, now);
    owners_.left(job);
  }
  void plan(const View& view, Plan& plan) override {
    std::uint32_t best = 0;
    double most = -1;
    for (std::uint32_t i = 0; i < view.jobs.size(); ++i) {
      const double worth = this->worth(view.jobs[i], view.now);
      if (worth > most || (worth == most && view.jobs[i].sequence < view.jobs[best].sequence)) best = i, most = worth;
    }
    plan.run(best, view.capacity, quantum_);
  }

 private:
  /// `mark` holds 1 / T_e, because there is time for only one division per job and decision.
  double worth(const Job& job, Time now) const {
    const Burst& burst = Owners<Burst>::of(job);
    const double per_predicted = std::bit_cast<double>(job.mark[1]);
    const Time turnaround = burst.turnaround + (now - job.arrived) + job.remaining;
    const double slowdown = static_cast<double>(turnaround.count()) * per_predicted;
    const Time left = burst.alone + job.remaining - (job.state == JobState::running ? job.eviction : Time{0});
    return raise(slowdown * job.weight, power_ - 1) * per_predicted /
           static_cast<double>(std::max(left, Time{1}).count());
  }

  int power_;
  Time quantum_;
  Owners<Burst> owners_;
};
}  // namespace

MadePolicy make_smith(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const int power = static_cast<int>(options.whole("power", 6, 1, 32));
  const Time quantum = options.milliseconds("quantum_ms", 1, 0.05, 10000);
  return finish_policy<Smith>(options, power, quantum);
}

}  // namespace gpuctl::sched
