// Counts the broken contexts that programs report. For each it says what helps to find the program that was first:
// under MPS one program's fault reaches all others on the GPU. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace gpuctl::daemon {

/// So many reports of one process get a line each in the log; later ones are only counted.
inline constexpr int kFaultLinesPerProcess = 8;
/// Under MPS a fault that follows another program's on the same GPU within this time is taken for its consequence.
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
  int of_process = 0;          ///< how many faults the process reported before
};

class Faults {
 public:
  /// Counts the fault. Returns the line for the log; empty if the process has had its lines.
  std::string add(const Fault& fault);

  std::int64_t of(std::string_view slice) const;
  std::int64_t total() const { return total_; }

  /// Forgets slices that no longer exist: a new slice of the same name is another slice.
  void keep(const std::function<bool(const std::string& slice)>& exists);

 private:
  struct First {
    std::int32_t pid;
    std::string command;
    std::int64_t time_us;
    int others;  ///< faults that followed it
  };
  std::string order(const Fault& fault);

  std::map<std::string, std::int64_t, std::less<>> by_slice_;
  std::int64_t total_ = 0;
  std::map<int, First> first_;  ///< by device: the first of the latest faults that came together
};

}  // namespace gpuctl::daemon
