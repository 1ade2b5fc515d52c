// What programs that have ended, or were moved away, reported: for each slice, the sums over those that were in it or
// below it. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "gpuctld/clients/launch_counts.h"

namespace gpuctl::daemon {

class Ended {
 public:
  struct Sums {
    std::int64_t programs = 0;  ///< that have ended
    LaunchCounts counts;        ///< of programs while they were there
  };

  /// A program in `slice` has ended, or has lost its connection: then what it reports begins anew.
  void add(std::string_view slice, const LaunchCounts& counts) { add(slice, 1, counts); }
  /// A program goes from `slice` to another one.
  void moved(std::string_view slice, const LaunchCounts& counts) { add(slice, 0, counts); }

  Sums of(std::string_view slice) const;

  /// Forgets slices that no longer exist: a new slice of the same name is another slice. Those above keep their sums.
  void keep(const std::function<bool(const std::string& slice)>& exists);

 private:
  void add(std::string_view slice, std::int64_t programs, const LaunchCounts& counts);

  std::map<std::string, Sums, std::less<>> by_slice_;
};

}  // namespace gpuctl::daemon
