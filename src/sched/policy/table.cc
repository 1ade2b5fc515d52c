// The table of policies. Everything that lists or names policies reads it.
#include <array>

#include "sched/policy.h"
#include "sched/policy/share.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
constexpr std::array kPolicies{
    Policy{"share", "side by side: reserves first, the rest by weight up to max and demand", "", divide_share,
           make_share},
    Policy{"fcfs", "first come, first served to completion: what the hardware does by itself", "", nullptr, make_fcfs},
    Policy{"hpf", "highest priority first, shortest remaining time inside a priority (FLEP)",
           "spatial=0 extra=0 protect_ms=0 streams=0", nullptr, make_hpf},
    Policy{"ffs", "weighted round robin with bounded preemption overhead (FLEP)", "max_overhead=0.1 streams=0", nullptr,
           make_ffs},
    Policy{"piv", "highest priority first, each to completion unless a higher one comes (EffiSha)",
           "protect_ms=0 streams=0", nullptr, make_piv},
    Policy{"dprr", "round robin with priorities that rise while waiting (EffiSha)", "streams=0", nullptr, make_dprr},
    Policy{"sjf", "shortest job first", "protect_ms=0 to_end=0 streams=0", nullptr, make_sjf},
    Policy{"srt", "shortest remaining time first", "protect_ms=0 streams=0", nullptr, make_srt},
    Policy{"rr", "round robin", "quantum_ms=1 streams=0", nullptr, make_rr},
    Policy{"cfs", "equal parts of an epoch, the longest waiting first", "epoch_ms=4 streams=0", nullptr, make_cfs},
    Policy{"frs", "the most slowed down first, until slowdowns are equal (FRS)", "quantum_ms=1 streams=0", nullptr,
           make_frs},
    Policy{"smith", "least sum of a power of the slowdowns: responsive and fair", "power=6 quantum_ms=1 streams=0",
           nullptr, make_smith},
    Policy{"sim", "side by side by time curves, so that all end early (SiM)", "refine_ms=10 floor=0.25 trial=1",
           nullptr, make_sim, true},
};

std::string names_of(std::span<const Policy> policies) {
  std::string names;
  for (const Policy& policy : policies) names.append(names.empty() ? "" : ", ").append(policy.name);
  return names;
}
}  // namespace

std::span<const Policy> policies() {
  return kPolicies;
}

const Policy* find_policy(std::string_view name) {
  for (const Policy& policy : kPolicies)
    if (policy.name == name) return &policy;
  return nullptr;
}

std::string policy_names() {
  return names_of(kPolicies);
}

std::string job_policy_names() {
  return names_of(std::span(kPolicies).subspan(1)) + ", " + std::string(kPolicies.front().name);
}

}  // namespace gpuctl::sched
