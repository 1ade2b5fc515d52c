// Images that wait for the compile helper, and the helper that works on some of them. This process has one helper at a
// time. It takes some of those that wait when it is started; only then do they get the memory that the helper shares,
// and for a moment a descriptor each. Nothing here calls the driver.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libgpuslice/image/compile_job.h"

namespace gpuslice {

/// The result of a job: forms, or an error that says in one line why there are none.
using CompileResult = gpuctl::Result<Forms>;

class CompileQueue {
 public:
  /// The instance of this process; never destroyed.
  static CompileQueue& get();

  /// tick() calls `done` once, on the thread that called tick(). `done` must not throw.
  using Done = std::function<void(CompileResult)>;
  void add(CompileRequest request, Done done);

  /// Delivers the results that are ready, and starts a helper if jobs wait. Any thread; to be called five times a
  /// second.
  void tick();

  /// Compiles now, and waits for the helper, at most kLongestWait.
  static constexpr std::chrono::seconds kLongestWait{60};
  static CompileResult compile_and_wait(const CompileRequest& request);

  /// How much PTX may wait. What comes when that much does is refused: a later start of the program compiles it.
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  explicit CompileQueue(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  /// Called in a forked child. The jobs are the parent's.
  void forget_after_fork();

 private:
  struct Waiting {
    CompileRequest request;
    Done done;
  };
  struct Running {
    CompileJob job;
    Done done;
  };
  struct Ended {
    CompileResult result;
    Done done;
  };
  void take_ended(std::vector<Ended>& ended);
  void start_helper(std::vector<Ended>& ended);

  const std::size_t most_bytes_;
  std::mutex mutex_;  ///< guards what follows
  std::deque<Waiting> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::vector<Running> running_;
  pid_t helper_ = -1;
};

}  // namespace gpuslice
