// Launches that ended, for those who record them (Record of io.gpuctl). Nothing is kept while nobody does. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "ipc/trace.h"

namespace gpuctl::daemon {

/// Kept for readers that are slow; what is older is lost to them.
inline constexpr std::size_t kMostKept = 65536;

class Recorder {
 public:
  bool wanted() const { return !readers_.empty(); }
  void add(ipc::Launch launch);

  struct Part {
    std::vector<ipc::Launch> launches;
    std::uint64_t lost = 0;  ///< among those before the first of these
  };
  /// What ended since the reader's last call; nothing at its first, from which on it is a reader.
  Part read(const void* reader);
  /// The reader is gone, if it was one.
  void forget(const void* reader);

 private:
  void drop_what_all_have();

  std::deque<ipc::Launch> kept_;
  std::uint64_t first_ = 0;                       ///< number of kept_.front()
  std::map<const void*, std::uint64_t> readers_;  ///< number of the launch each reads next
};

}  // namespace gpuctl::daemon
