// Counts what programs report as broken contexts, and says of each what helps to find who was first: under MPS one
// program's fault reaches all others on the GPU. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace gpuctl::daemon {

/// Of these reports of one process each is a line in the log; then they are only counted.
inline constexpr int kFaultLinesPerProcess = 8;
/// Faults that follow another program's on the same GPU within this time, under MPS, are taken for its consequences.
inline constexpr std::int64_t kFaultFollowsWithinUs = 5'000'000;
inline constexpr std::size_t kMostFaultName = 64;

struct Fault {
  std::int32_t pid = 0;
  std::string command, slice;
  int device = 0;
  std::int64_t error = 0;
  std::string name;            ///< of the error, as the program gives it
  std::int64_t time_us = 0;    ///< since the epoch
  bool shares_faults = false;  ///< the GPU is under MPS
  int of_process = 0;          ///< how many the process reported before
};

class Faults {
 public:
  /// Counts it. The line for the log; empty when the process had its lines.
  std::string add(const Fault& fault);

  std::int64_t of(std::string_view slice) const;
  std::int64_t total() const { return total_; }

  /// Forgets slices that are gone: one of the same name is another one.
  void keep(const std::function<bool(const std::string& slice)>& exists);

 private:
  struct First {
    std::int32_t pid;
    std::string command;
    std::int64_t time_us;
    int others;  ///< that followed
  };
  std::string order(const Fault& fault);

  std::map<std::string, std::int64_t, std::less<>> by_slice_;
  std::int64_t total_ = 0;
  std::map<int, First> first_;  ///< by device, of the latest faults that came together
};

}  // namespace gpuctl::daemon
