// The guard around driver calls that block until the device is idle. Inside the driver, such a call holds what an
// evicted launch needs to resume. So it begins while no launch is incomplete, and no launch starts before it returns.
//
// But what the launches wait for may be something that this very thread does after the call. So the wait has an end
// (patience.h). Then launches may start again, and the call is made as it would be without us. If it holds up an
// evicted launch after all, and its agent, that is seen and the launch ends without new workers (Context::rescue).
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "libgpuslice/base/patience.h"

namespace gpuslice {

/// A source of launches that can be stopped.
class LaunchSource {
 public:
  /// Blocks new launches and waits until none is incomplete. After that the caller may make driver calls that block.
  /// Returns false if that takes too long: as Patience says, or with `limits`, which are for where something may wait
  /// for the program that its streams do not tell of. The caller must call resume_launches() in any case.
  virtual bool quiesce(std::optional<Patience::Limits> limits) = 0;
  virtual void resume_launches() = 0;
  /// Whether no launch is known to be on the GPU.
  virtual bool idle() = 0;
  virtual int device() const = 0;

 protected:
  ~LaunchSource() = default;
};

/// All launch sources of the process: its managed contexts. Defined in agent/contexts.cc, where these are listed.
std::vector<LaunchSource*> launch_sources();
/// Whether something is known to run in streams of the program on this device, in whatever form it was launched. Asks
/// the driver. Defined in agent/bursts.cc, where the streams are listed.
bool work_runs(int device);

/// Quiesces launch sources for its lifetime. The constructor may wait as long as evicted launches do.
class QuiesceLaunches {
 public:
  static constexpr int kAllDevices = -1;

  /// Those of one device, where the call has to do with no other.
  explicit QuiesceLaunches(int device = kAllDevices, std::optional<Patience::Limits> limits = std::nullopt)
      : limits_(limits) {
    ++alive_;
    std::vector<LaunchSource*> sources = launch_sources();
    std::erase_if(sources,
                  [device](const LaunchSource* source) { return device != kAllDevices && source->device() != device; });
    stop(std::move(sources));
  }
  explicit QuiesceLaunches(LaunchSource& source) {
    ++alive_;
    stop({&source});
  }
  ~QuiesceLaunches() {
    resume();
    --alive_;
  }
  QuiesceLaunches(const QuiesceLaunches&) = delete;
  QuiesceLaunches& operator=(const QuiesceLaunches&) = delete;

  /// Whether no launch is incomplete, and none starts.
  bool quiet() const { return quiet_; }
  /// Whether an object lives: a thread may block in the driver.
  static bool any() { return alive_.load(std::memory_order_relaxed) > 0; }

 private:
  void stop(std::vector<LaunchSource*> sources) {
    stopped_.reserve(sources.size());
    for (LaunchSource* source : sources) {
      stopped_.push_back(source);
      if ((quiet_ = source->quiesce(limits_))) continue;
      resume();  // the call may block until another thread has launched something
      return;
    }
  }
  void resume() {
    for (LaunchSource* source : stopped_) source->resume_launches();
    stopped_.clear();
  }

  static inline constinit std::atomic<int> alive_{0};

  const std::optional<Patience::Limits> limits_;
  bool quiet_ = true;
  std::vector<LaunchSource*> stopped_;
};

}  // namespace gpuslice
