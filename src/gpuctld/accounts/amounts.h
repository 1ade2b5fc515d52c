// What a program, or many together, used of a GPU.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

namespace gpuctl::daemon {

struct Amounts {
  double sm_s = 0;           ///< seconds of work, each times the SMs that the program had
  double work_s = 0;         ///< with work on the GPU: in bursts
  double waited_s = 0;       ///< of these, with fewer SMs than it could fill
  double memory_byte_s = 0;  ///< bytes held, times seconds
  double joules = 0;         ///< energy (energy_shares.h)
  std::int64_t launches = 0;
  std::int64_t bursts = 0;
  std::int64_t evictions = 0;

  Amounts& operator+=(const Amounts& more) {
    sm_s += more.sm_s;
    work_s += more.work_s;
    waited_s += more.waited_s;
    memory_byte_s += more.memory_byte_s;
    joules += more.joules;
    launches += more.launches;
    bursts += more.bursts;
    evictions += more.evictions;
    return *this;
  }
  bool operator==(const Amounts&) const = default;
};

/// Whose they are.
struct AccountKey {
  std::string slice;
  std::uint32_t uid = 0;
  std::string gpu;  ///< UUID
  auto operator<=>(const AccountKey&) const = default;
};

using Accounts = std::map<AccountKey, Amounts>;

}  // namespace gpuctl::daemon
