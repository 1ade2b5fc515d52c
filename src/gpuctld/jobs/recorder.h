// Launches that ended, for callers of Record (io.gpuctl). Nothing is kept while there is no reader. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::daemon {

/// Bytes kept for slow readers, which lose older launches. Names are as long as programs make them.
inline constexpr std::size_t kMostKeptBytes = 24u << 20;

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
    bool more = false;       ///< there are more than that
  };
  /// What ended since the reader's last call, as much as one reply may have. The first call returns nothing and makes
  /// it a reader. `original`: launches in original form too.
  Part read(const void* reader, bool original = false);
  /// The reader, if it was one, is gone.
  void forget(const void* reader);

 private:
  void drop_what_all_have();

  void drop_first();

  std::deque<Ended> kept_;
  std::size_t bytes_ = 0;                         ///< of kept_
  std::uint64_t first_ = 0;                       ///< number of kept_.front()
  std::map<const void*, std::uint64_t> readers_;  ///< number of the launch that each reader reads next
};

}  // namespace gpuctl::daemon
