// Whose the energy is that GPUs used. The lowest power of a GPU from one reading to the next, of all so far, is that of
// rest. Of the energy at rest a program has the part that its SM seconds are of all those of the GPU: what falls to SMs
// on which nobody worked is nobody's. What is above that is of those who worked, by their SM seconds. Nobody has more
// than by SM seconds alone until a GPU was seen to use less. Pure; time is an argument.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gpuctld/accounts/amounts.h"

namespace gpuctl::daemon {

class EnergyShares {
 public:
  /// This was used since the last call.
  void add(const Accounts& used);
  /// What the GPU of `sms` SMs has used until now, ever. Returns the joules of whom they are, and nothing else: none
  /// for the first reading, and where the driver counts anew.
  Accounts read(const std::string& gpu, std::uint32_t sms, std::uint64_t millijoules, std::uint64_t now_ns);
  /// No reading counts any more, but what the power is at rest: for a while nobody reads.
  void rest() { gpus_.clear(); }

 private:
  struct Gpu {
    std::uint64_t millijoules = 0, read_ns = 0;
    std::map<AccountKey, double> sm_s;  ///< since then
  };
  std::map<std::string, Gpu> gpus_;        ///< that were read, by UUID
  std::map<std::string, double> at_rest_;  ///< watts
};

}  // namespace gpuctl::daemon
