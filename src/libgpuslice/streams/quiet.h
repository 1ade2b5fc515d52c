// The guard around driver calls that block until the device is idle. Inside the driver such a call
// holds what resuming an evicted launch needs; so it is only entered while no launch is incomplete, and none starts
// before it returns.
#pragma once

#include <vector>

namespace gpuslice {

/// What launches, and can be told not to.
class LaunchSource {
 public:
  /// Blocks new launches and waits until none is incomplete; then the caller may call what blocks in the driver. Must
  /// be followed by resume_launches().
  virtual void quiesce() = 0;
  virtual void resume_launches() = 0;

 protected:
  ~LaunchSource() = default;
};

/// All of the process: its managed contexts. Defined where these are listed (agent/contexts.cc).
std::vector<LaunchSource*> launch_sources();

/// Quiesces all of them for its lifetime. May wait as long as evicted launches do.
class Quiet {
 public:
  Quiet() : sources_(launch_sources()) {
    for (LaunchSource* source : sources_) source->quiesce();
  }
  ~Quiet() {
    for (LaunchSource* source : sources_) source->resume_launches();
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  std::vector<LaunchSource*> sources_;
};

}  // namespace gpuslice
