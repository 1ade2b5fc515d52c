// The guard around driver calls that block until the device is idle. Inside the driver, such a call holds what an
// evicted launch needs to resume. So it may begin only while no launch is incomplete, and no launch may start before it
// returns.
#pragma once

#include <chrono>
#include <vector>

namespace gpuslice {

/// A source of launches that can be stopped.
class LaunchSource {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Blocks new launches and waits until none is incomplete. After that the caller may make driver calls that block.
  /// Returns false if some still are at `until`. The caller must call resume_launches() in any case.
  virtual bool quiesce(TimePoint until) = 0;
  virtual void resume_launches() = 0;
  /// Whether no launch is known to be on the GPU.
  virtual bool idle() = 0;

 protected:
  ~LaunchSource() = default;
};

/// All launch sources of the process: its managed contexts. Defined in agent/contexts.cc, where these are listed.
std::vector<LaunchSource*> launch_sources();

/// Quiesces all launch sources for its lifetime. The constructor may wait as long as evicted launches do, or until the
/// time given.
class QuiesceLaunches {
 public:
  explicit QuiesceLaunches(LaunchSource::TimePoint until = LaunchSource::TimePoint::max())
      : sources_(launch_sources()) {
    for (LaunchSource* source : sources_) quiet_ &= source->quiesce(until);
  }
  ~QuiesceLaunches() {
    for (LaunchSource* source : sources_) source->resume_launches();
  }
  QuiesceLaunches(const QuiesceLaunches&) = delete;
  QuiesceLaunches& operator=(const QuiesceLaunches&) = delete;

  /// Whether no launch is incomplete.
  bool quiet() const { return quiet_; }

 private:
  bool quiet_ = true;
  std::vector<LaunchSource*> sources_;
};

}  // namespace gpuslice
