// What programs that have ended reported: for each slice, the sums over those that were in it or below it. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::daemon {

class Ended {
 public:
  struct Sums {
    std::int64_t programs = 0;
    std::int64_t launches = 0;   ///< as the programs counted them, on all devices
    std::int64_t evictions = 0;  ///< the same
  };

  /// A program in `slice` has ended, or has lost its connection: then what it reports begins anew.
  void add(std::string_view slice, const std::vector<ipc::ClientUsage>& usage);

  Sums of(std::string_view slice) const;

  /// Forgets slices that no longer exist: a new slice of the same name is another slice. Those above keep their sums.
  void keep(const std::function<bool(const std::string& slice)>& exists);

 private:
  std::map<std::string, Sums, std::less<>> by_slice_;
};

}  // namespace gpuctl::daemon
