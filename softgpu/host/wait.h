// Waits in a context that may be stopped meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace gpuctl::softgpu {

/// Returns true once `holds()`, or false soon after `stopped` becomes true. Nothing wakes the waiting threads then, so
/// they poll it.
template <class Condition>
bool wait_until_stopped(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                        const std::atomic<bool>& stopped, Condition holds) {
  constexpr std::chrono::milliseconds kLookAtStopped{10};
  while (!stopped.load()) {
    if (changed.wait_for(lock, kLookAtStopped, holds)) return true;
  }
  return holds();
}

}  // namespace gpuctl::softgpu
