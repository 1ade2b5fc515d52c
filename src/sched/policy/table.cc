// The table of policies. Everything that lists or names policies reads it.
#include <array>

#include "sched/policy.h"
#include "sched/policy/share.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
constexpr std::array kPolicies{
    Policy{"share", "for programs that may run side by side: reserves first, the rest by weight up to max and demand",
           "", divide_share, make_share},
    Policy{"srt", "for the least mean time of requests: the shortest remaining time goes first", "protect_ms=0",
           nullptr, make_srt},
    Policy{"frs", "for programs that are to be slowed down alike: the most slowed down goes first (FRS)",
           "quantum_ms=1", nullptr, make_frs},
    Policy{"ffs", "for parts of the time by weight, at a bounded cost of evictions (FLEP)", "max_overhead=0.1", nullptr,
           make_ffs},
    Policy{"dprr", "for priorities under which nobody starves: they rise while a program waits (EffiSha)", "", nullptr,
           make_dprr},
    Policy{"hpf", "for priorities that always win; of equal ones the shortest remaining time goes first (FLEP)",
           "spatial=0 extra=0 protect_ms=0", nullptr, make_hpf},

    // From here on those with which papers are repeated.
    Policy{"fcfs", "first come, first served to completion: what the hardware does by itself", "", nullptr, make_fcfs},
    Policy{"piv", "highest priority first, each to completion unless a higher one comes (EffiSha)", "protect_ms=0",
           nullptr, make_piv},
    Policy{"sjf", "shortest job first (FRS)", "protect_ms=0 to_end=0", nullptr, make_sjf},
    Policy{"rr", "round robin (FRS)", "quantum_ms=1", nullptr, make_rr},
    Policy{"cfs", "equal parts of an epoch, the longest waiting first (FRS)", "epoch_ms=4", nullptr, make_cfs},
    Policy{"sim", "side by side by time curves, so that all end early (SiM)", "refine_ms=10 floor=0.25", nullptr,
           make_sim},
};
constexpr std::size_t kOffered = 6;

std::string names_of(std::span<const Policy> policies) {
  std::string names;
  for (const Policy& policy : policies) names.append(names.empty() ? "" : ", ").append(policy.name);
  return names;
}
}  // namespace

std::span<const Policy> policies() {
  return kPolicies;
}

std::span<const Policy> offered_policies() {
  return policies().first(kOffered);
}

std::span<const Policy> policies_of_papers() {
  return policies().subspan(kOffered);
}

const Policy* find_policy(std::string_view name) {
  for (const Policy& policy : kPolicies)
    if (policy.name == name) return &policy;
  return nullptr;
}

std::string policy_names() {
  return names_of(offered_policies()) + "; of papers: " + names_of(policies_of_papers());
}

}  // namespace gpuctl::sched
