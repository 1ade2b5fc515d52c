// Which processes the log has announced. A program attaches more than once (gpuctl run does so before it becomes the
// program), and one line is enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace gpuctl::daemon {

class Arrivals {
 public:
  /// True if this process is seen for the first time, or was seen in another slice last. Remembers few more processes
  /// than are alive.
  bool news(std::int32_t pid, const std::string& slice);

  std::size_t remembered() const { return seen_.size(); }

 private:
  struct Arrival {
    std::uint64_t start = 0;  ///< of the process, because its number may be given to another
    std::string slice;
    bool operator==(const Arrival&) const = default;
  };
  std::map<std::int32_t, Arrival> seen_;
  std::size_t forget_at_ = 64;
};

}  // namespace gpuctl::daemon
