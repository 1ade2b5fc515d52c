// Records what the clients may be using, for the next daemon (holdings.h): before it becomes more, and soon after it
// has become less.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "gpuctld/scheduler/scheduler.h"

namespace gpuctl::daemon {

/// Everything is called on the scheduler's thread.
class HoldingsRecord {
 public:
  using Log = std::function<void(const std::string&)>;
  static constexpr std::chrono::seconds kTidyEvery{1};

  /// `scheduler` outlives this object. `file` empty: nothing is recorded.
  HoldingsRecord(Scheduler& scheduler, std::string file, Log log);

  /// From now on the file is written before anybody may use more.
  void begin();
  /// A client is gone.
  void note_gone() { stale_ = true; }
  /// Takes out what is no longer used, if the last time was kTidyEvery ago or `now`.
  void tidy(std::uint64_t now_ns, bool now = false);

 private:
  void save();

  Scheduler& scheduler_;
  const std::string file_;
  Log log_;
  std::uint64_t tidied_ns_ = 0;
  bool stale_ = false;  ///< the file says more than is true
  bool lost_ = false;   ///< the file could not be written, and that was logged
};

}  // namespace gpuctl::daemon
