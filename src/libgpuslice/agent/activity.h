// Launches while nothing is in force (Mode::free). They go to the driver unchanged, and no context is managed for them.
// Only the fact that there are launches is kept. The daemon is told when work begins, and, by the client's thread, when
// nothing was launched for a while.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/sm_range.h"
#include "ipc/stub.h"
#include "ipc/stub_map.h"

namespace gpuslice {

class Activity {
 public:
  /// The instance of this process; never destroyed.
  static Activity& get() { return instance_; }

  /// The current context's device if nothing is in force there for this client and its channel groups need no
  /// attention; else -1. Any thread. Makes one driver call, which does not wait.
  static int free_device();

  /// Whether the driver's time slices are to stay as they are. With other values the agent sets them, which needs a
  /// managed context.
  static bool leaves_time_slices(const gpuctl::ipc::Grant& grant) {
    const std::uint32_t slice = gpuctl::ipc::load(grant.time_slice_us);
    return slice == 0 || slice == gpuctl::ipc::kDriversTimeSlice;
  }

  /// A launch of `blocks` blocks is about to go to the device. Any thread. Makes a system call only when work begins
  /// after a pause.
  void launched(int device, std::uint64_t blocks) {
    Device& its = devices_[static_cast<std::size_t>(device)];
    its.launches.fetch_add(1, std::memory_order_relaxed);
    const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, gpuctl::kMaxSms));
    if (most > its.blocks.load(std::memory_order_relaxed)) its.blocks.store(most, std::memory_order_relaxed);
    if (!its.at_work.load(std::memory_order_relaxed)) [[unlikely]]
      begin_work(device, most);
  }

  /// Counts what was launched since the last call, in the client's page. Any thread; makes no call to the driver.
  void count();

  /// Called by the client's thread. Counts, and checks whether there still is work. Returns the time until the next
  /// call.
  std::chrono::milliseconds look();

  /// Whether anything was launched this way in this process.
  bool any() const { return any_.load(std::memory_order_relaxed); }

  void forget_after_fork();

 private:
  static Activity instance_;

  struct alignas(64) Device {
    std::atomic<std::uint32_t> launches{0};  ///< that are not counted yet
    std::atomic<std::uint32_t> blocks{0};    ///< of the largest launch since work began, at most kMaxSms
    std::atomic<bool> at_work{false};
  };
  void begin_work(int device, std::uint32_t blocks);
  /// Of one device; returns how many there were.
  std::uint32_t count(std::size_t device);
  static void publish(int device, std::uint32_t demand);

  std::atomic<bool> any_{false};
  std::array<Device, gpuctl::ipc::kMaxDevices> devices_{};
};

}  // namespace gpuslice
