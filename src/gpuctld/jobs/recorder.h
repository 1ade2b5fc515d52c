// Launches that ended, for callers of Record (io.gpuctl). Nothing is kept while there is no reader. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::daemon {

/// Kept for slow readers. A reader loses older launches.
inline constexpr std::size_t kMostKept = 65536;

class Recorder {
 public:
  bool wanted() const { return !readers_.empty(); }
  struct Ended {
    std::uint32_t uid = 0;  ///< whose program it was
    ipc::Launch launch;
  };
  void add(Ended ended);

  struct Part {
    std::vector<Ended> launches;
    std::uint64_t lost = 0;  ///< launches that were lost before the first of these
  };
  /// What ended since the reader's last call. The first call returns nothing and makes it a reader. `original`:
  /// launches in original form too.
  Part read(const void* reader, bool original = false);
  /// The reader, if it was one, is gone.
  void forget(const void* reader);

 private:
  void drop_what_all_have();

  std::deque<Ended> kept_;
  std::uint64_t first_ = 0;                       ///< number of kept_.front()
  std::map<const void*, std::uint64_t> readers_;  ///< number of the launch that each reader reads next
};

}  // namespace gpuctl::daemon
