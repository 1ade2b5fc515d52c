// Launches while nothing is in force (ipc::kFree): they go to the driver as they came, no context is managed for them,
// and all that is kept is that there are some. The daemon hears when work begins, and from the client's thread when
// none was launched for a while.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "ipc/stub.h"

namespace gpuslice {

class Activity {
 public:
  /// The one of this process; never destroyed.
  static Activity& get();

  /// Whether nothing is in force for this client on the current context's device, and nobody has to look after its
  /// channel groups: which device that is, else -1. Any thread; makes one call of the driver that does not wait.
  static int free_device();

  /// A launch of so many blocks is about to go to the device. Any thread; a system call only where work begins after a
  /// pause.
  void launched(int device, std::uint64_t blocks);

  /// Of the client's thread: what was launched since the last call, and whether there still is work. How long until the
  /// next call.
  std::chrono::milliseconds look();

  /// Something was launched so in this process.
  bool any() const { return any_.load(std::memory_order_relaxed); }

  void forget_after_fork();

 private:
  struct alignas(64) Device {
    std::atomic<std::uint32_t> launches{0};  ///< counts up, wraps
    std::atomic<std::uint32_t> blocks{0};    ///< the most of one launch since work began
    std::atomic<bool> at_work{false};
    std::uint32_t seen = 0;  ///< launches at the latest look(); its thread's
  };
  static void publish(int device, std::uint32_t demand);

  std::atomic<bool> any_{false};
  std::array<Device, gpuctl::ipc::kMaxDevices> devices_;
};

}  // namespace gpuslice
