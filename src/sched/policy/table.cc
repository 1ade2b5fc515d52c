// The table of policies. Everything that lists or names policies reads it.
#include <array>

#include "sched/policy.h"
#include "sched/policy/share.h"

namespace gpuctl::sched {

namespace {
constexpr std::array kPolicies{
    Policy{"share", "side by side: reserves first, the rest by weight up to max and demand", divide_share},
};
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
  std::string names;
  for (const Policy& policy : kPolicies) names.append(names.empty() ? "" : ", ").append(policy.name);
  return names;
}

}  // namespace gpuctl::sched
