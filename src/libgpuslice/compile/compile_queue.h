// Images that wait for the compile helper, and the helper that works on some of them. This process has one helper at a
// time. It takes the jobs that wait when it is started. Nothing here calls the driver.
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

/// The result of a job: forms, or an error that says in one line why there are none.
using CompileResult = gpuctl::Result<Forms>;

class CompileQueue {
 public:
  /// The instance of this process; never destroyed.
  static CompileQueue& get();

  /// tick() calls `done` once, on the thread that called tick(). `done` must not throw.
  using Done = std::function<void(CompileResult)>;
  void add(CompileJob job, Done done);

  /// Delivers the results that are ready, and starts a helper if jobs wait. Any thread; to be called five times a
  /// second.
  void tick();

  /// Compiles now, and waits for the helper, at most kLongestWait.
  static constexpr std::chrono::seconds kLongestWait{60};
  static CompileResult compile_and_wait(CompileJob job);

  /// Called in a forked child. The jobs are the parent's.
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
