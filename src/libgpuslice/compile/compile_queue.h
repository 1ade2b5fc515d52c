// Images that wait for the compile helper, and the helper that works on some of them. There is one helper of this
// process at a time; it takes all jobs that wait when it is started. Nothing here calls the driver.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libgpuslice/compile/compile_job.h"

namespace gpuslice {

/// What became of a job: forms, or why there are none, in one line.
using CompileResult = gpuctl::Result<Forms>;

class CompileQueue {
 public:
  /// The one of this process; never destroyed.
  static CompileQueue& get();

  /// `done` is called once, by tick(), on whichever thread calls that; it may throw nothing.
  using Done = std::function<void(CompileResult)>;
  void add(CompileJob job, Done done);

  /// Hands out the results that are there, and starts the helper where jobs wait. Any thread, every fifth of a second.
  void tick();

  /// Compiles now: waits for the helper, and no longer than kLongestWait.
  static constexpr std::chrono::seconds kLongestWait{60};
  static CompileResult compile_and_wait(CompileJob job);

  /// In a forked child: the jobs are the parent's.
  void forget_after_fork();

 private:
  struct Entry {
    CompileJob job;
    Done done;
  };

  std::mutex mutex_;  ///< guards what follows
  std::deque<Entry> waiting_;
  std::vector<Entry> running_;
  pid_t helper_ = -1;
};

}  // namespace gpuslice
