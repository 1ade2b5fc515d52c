// Which processes have been announced in the log: a program attaches more than once (gpuctl run does so before it
// becomes the program), and one line is enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace gpuctl::daemon {

class Arrivals {
 public:
  /// True the first time that this process is seen in this slice, or when it was seen in another one since. Remembers
  /// no more than the processes that live, and a few.
  bool news(std::int32_t pid, const std::string& slice);

  std::size_t remembered() const { return seen_.size(); }

 private:
  struct Arrival {
    std::uint64_t start = 0;  ///< of the process: its number may be given to another
    std::string slice;
    bool operator==(const Arrival&) const = default;
  };
  std::map<std::int32_t, Arrival> seen_;
  std::size_t forget_at_ = 64;
};

}  // namespace gpuctl::daemon
