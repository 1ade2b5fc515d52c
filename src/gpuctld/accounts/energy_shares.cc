#include "gpuctld/accounts/energy_shares.h"

#include <algorithm>
#include <utility>

namespace gpuctl::daemon {

void EnergyShares::add(const Accounts& used) {
  for (const auto& [key, amounts] : used)
    if (const auto gpu = gpus_.find(key.gpu); gpu != gpus_.end() && amounts.sm_s > 0)
      gpu->second.sm_s[key] += amounts.sm_s;
}

Accounts EnergyShares::read(const std::string& gpu, std::uint32_t sms, std::uint64_t millijoules,
                            std::uint64_t now_ns) {
  const auto [known, is_new] = gpus_.try_emplace(gpu);
  const Gpu before = std::exchange(known->second, {.millijoules = millijoules, .read_ns = now_ns, .sm_s = {}});
  Accounts joules;
  if (is_new || millijoules < before.millijoules || now_ns <= before.read_ns) return joules;
  const double seconds = static_cast<double>(now_ns - before.read_ns) / 1e9,
               energy = static_cast<double>(millijoules - before.millijoules) / 1e3;
  double& watts = at_rest_.try_emplace(gpu, energy / seconds).first->second;
  watts = std::min(watts, energy / seconds);
  const double resting = std::min(energy, watts * seconds);
  double all = sms * seconds;
  double used = 0;
  for (const auto& [key, sm_s] : before.sm_s) used += sm_s;
  all = std::max(all, used);  // what began before the last reading, and was told after it
  for (const auto& [key, sm_s] : before.sm_s)
    joules[key].joules = resting * sm_s / all + (energy - resting) * sm_s / used;
  return joules;
}

}  // namespace gpuctl::daemon
