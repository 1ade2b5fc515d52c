// Waiting for something of a context that may be stopped meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace gpuctl::softgpu {

/// Returns true once `holds()`, or false soon after `stopped` became true: nobody wakes those who wait then, so they
/// look.
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
