// Records what was promised to the clients, for the next daemon (holdings.h): before it becomes more, and soon after it
// has become less. While that fails nothing more is promised than the record has, and it is tried again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpuctld/restart/moved.h"
#include "gpuctld/scheduler/scheduler.h"

namespace gpuctl::daemon {

/// Everything is called on the scheduler's thread.
class HoldingsRecord {
 public:
  using Log = std::function<void(const std::string&)>;
  /// Replaces the record by this text, in one step.
  using Store = std::function<Result<void>(const std::string& text)>;
  static constexpr std::chrono::seconds kTidyEvery{1};
  /// Between two tries while the record cannot be written; each pause is twice as long as the one before.
  static constexpr std::chrono::milliseconds kFirstPause{10}, kLongestPause{1000};

  /// `scheduler` outlives this object. `store` empty: nothing is recorded.
  /// `moved`, which outlives it too, is recorded beside that.
  HoldingsRecord(Scheduler& scheduler, Store store, Log log, const Moved* moved = nullptr);

  /// The clients are recorded as they are. From now on that is done before anybody may have more.
  void begin(std::uint64_t now_ns);
  /// A client is gone, or was moved.
  void note_gone() { stale_ = true; }
  /// Takes out what is no longer used, if the last time was kTidyEvery ago or `now`. Tries again what failed.
  void tidy(std::uint64_t now_ns, bool now = false);

  /// Why nobody gets more than is recorded; null: it can be recorded.
  const std::string* problem() const { return problem_.empty() ? nullptr : &problem_; }

 private:
  bool save(std::uint64_t now_ns);
  bool work_is_stale() const;

  Scheduler& scheduler_;
  Store store_;
  Log log_;
  const Moved* moved_;
  std::uint64_t tidied_ns_ = 0, again_ns_ = 0;
  std::chrono::nanoseconds pause_ = kFirstPause;
  bool stale_ = false;  ///< the record says something else than is true
  std::string problem_;
  std::vector<Scheduler::Worked> worked_;  ///< as recorded
};

}  // namespace gpuctl::daemon
