// Device memory that leaves the GPUs for the host while the slice is frozen so (ipc/swap.h), by the driver's
// cuCheckpointProcess* of this process itself. A process may call them for itself, so nobody needs rights over another,
// the program of a container is none other, and no process can be mistaken.
//
// Between the lock and the unlock all other calls of the driver wait, in whatever thread, with whatever locks held:
// most within the driver, those that look at what the GPU has done at a gate of ours (base/look_gate.h). The thread
// that moves memory takes no lock of ours meanwhile, and makes no other call. Nor does the client's thread take one
// that a thread holds which calls the driver: it only gives its sign of life, and attaches to the next daemon. So it is
// that thread which begins.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "ipc/swap.h"
#include "ipc/types.h"

namespace gpuslice {

class Swap {
 public:
  /// The instance of this process; never destroyed.
  static Swap& get() { return instance_; }

  /// The client's thread calls it several times a second. True: see above.
  bool look();
  /// As Kernels::report(); while calls wait nothing is reported, and all of it afterwards.
  std::vector<gpuctl::ipc::Kernel> report_kernels(bool all);
  void note_managed_memory() { managed_.store(true, std::memory_order_relaxed); }
  /// The process begins to exit: what runs then may call the driver. Returns when memory is where calls do not wait for
  /// it, and it stays there. Waits for room on the GPU as long as it takes. Safe in a signal handler.
  void bring_back_for_good();

  void forget_after_fork();

 private:
  static Swap instance_;

  bool wanted() const;
  void run();
  gpuctl::ipc::Swap move_out();
  gpuctl::ipc::Swap wait_for_return();
  gpuctl::ipc::Swap bring_back();
  void say(const gpuctl::ipc::Swap& swap);
  void publish() const;

  std::atomic<bool> away_{false};  ///< set by the client's thread alone, cleared by the other
  std::atomic<bool> ends_{false};  ///< bring_back_for_good()
  std::atomic<bool> managed_{false};
  std::atomic<std::uint32_t> word_{0};  ///< of Stub::swap
  bool unreported_ = false;             ///< this and the next: of the client's thread alone
  std::uint64_t tried_ns_ = 0;          ///< 0: not since it is wanted
};

}  // namespace gpuslice
