// What each call of the program asks of the library, in one cache line.
//
// A program of some size has used so much between two launches that the library's lines are in no near cache any more.
// Then a launch costs as much as the lines that it needs, whatever it does with them (docs/design/launch-cost.md). So
// what nearly never changes lies together here, and whoever keeps it writes it here.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace gpuctl::ipc {
struct Stub;
}

namespace gpuslice {

struct alignas(64) LaunchWords {
  std::atomic<gpuctl::ipc::Stub*> page{nullptr};  ///< Client::stub()
  std::atomic<int> captures{0};                   ///< that are under way (base/capture.h)
  std::atomic<int> open_lanes{0};                 ///< in this process (streams/joining.h)
  std::atomic<bool> bands_used{false};            ///< some band other than all levels was seen (StreamPriorities)
  std::atomic<bool> lanes_used{false};            ///< there is a lane, so calls are counted (CallInFlight)
  std::atomic<bool> memory_ran_out{false};        ///< base/memory_reserve.h
  std::atomic<bool> one_device{false};            ///< the program sees one device: it is always the current one
  std::atomic<std::uint32_t> kernels{1};          ///< changes when a kernel's handle may mean another (Kernels)
  std::atomic<std::uint32_t> streams{1};          ///< the same of streams (StreamPriorities)
  std::atomic<std::uint64_t> ns_per_tick{0};      ///< in units of 2^-32; 0: not known (base/tick_clock.h)
  // The driver's, once it is loaded.
  std::atomic<decltype(&::cuLaunchKernel)> launch{nullptr};
  std::atomic<decltype(&::cuLaunchKernelEx)> launch_ex{nullptr};

  /// Whether nothing keeps a call in a stream from going straight to the driver: nothing has to join it.
  bool nothing_open() const { return open_lanes.load(std::memory_order_acquire) == 0; }
};
static_assert(sizeof(LaunchWords) == 64);

inline constinit LaunchWords g_launch_words;

}  // namespace gpuslice
