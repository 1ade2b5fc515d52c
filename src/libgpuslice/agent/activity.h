// Launches while nothing is in force (Mode::free). They go to the driver unchanged, and no context is managed for them.
// Only the fact that there are launches is kept. The daemon is told when work begins, and, by the client's thread, when
// nothing was launched for a while.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <shared_mutex>

#include "base/sm_range.h"
#include "ipc/stub.h"
#include "ipc/stub_map.h"
#include "libgpuslice/agent/burst.h"
#include "libgpuslice/base/launch_words.h"

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
  [[gnu::always_inline]] void launched(int device, std::uint64_t blocks) {
    Device& its = devices_[static_cast<std::size_t>(device)];
    its.launches.fetch_add(1, std::memory_order_relaxed);
    const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, gpuctl::kMaxSms));
    if (most > its.blocks.load(std::memory_order_relaxed)) its.blocks.store(most, std::memory_order_relaxed);
    if (!its.at_work.load(std::memory_order_relaxed)) [[unlikely]]
      begin_work(device, most);
  }

  /// The burst of a device (bursts.h), which is below kMaxDevices.
  Burst& burst(int device) { return devices_[static_cast<std::size_t>(device)].burst; }
  const Burst& burst(int device) const { return devices_[static_cast<std::size_t>(device)].burst; }
  bool any_burst() const {
    return std::any_of(devices_.begin(), devices_.begin() + devices(),
                       [](const Device& device) { return device.burst.open(); });
  }
  /// Copies, and launches that launched() is not told of. Threads that count at the same time may count one less.
  void count_other_work(int device) {
    std::atomic<std::uint32_t>& others = devices_[static_cast<std::size_t>(device)].others;
    others.store(others.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Changes when the program puts work on any device.
  std::uint32_t issued_so_far() const {
    if (g_launch_words.one_device.load(std::memory_order_relaxed)) [[likely]]
      return devices_[0].issued();
    std::uint32_t sum = 0;
    for (int i = 0; i < devices(); ++i) sum += devices_[static_cast<std::size_t>(i)].issued();
    return sum;
  }
  /// How many devices there are to look at.
  static int devices() {
    if (g_launch_words.one_device.load(std::memory_order_relaxed)) return 1;
    const gpuctl::ipc::Stub* page = g_launch_words.page.load(std::memory_order_acquire);
    return page ? static_cast<int>(std::min(gpuctl::ipc::load(page->devices), gpuctl::ipc::kMaxDevices)) : 0;
  }
  /// Held in common while the driver is asked about streams of bursts, and alone while one goes.
  std::shared_mutex& streams_used() { return streams_used_; }

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
    std::atomic<std::uint32_t> launches{0};
    std::atomic<std::uint32_t> blocks{0};  ///< of the largest launch since work began, at most kMaxSms
    std::atomic<bool> at_work{false};
    std::atomic<std::uint32_t> others{0};
    Burst burst;                            ///< begins in the same cache line
    std::atomic<std::uint32_t> counted{0};  ///< of `launches`

    std::uint32_t issued() const {
      return launches.load(std::memory_order_relaxed) + others.load(std::memory_order_relaxed);
    }
  };
  void begin_work(int device, std::uint32_t blocks);
  /// Of one device; returns how many there were.
  std::uint32_t count(std::size_t device);
  static void publish(int device, std::uint32_t demand);

  std::atomic<bool> any_{false};
  std::shared_mutex streams_used_;
  std::array<Device, gpuctl::ipc::kMaxDevices> devices_{};
};

}  // namespace gpuslice
