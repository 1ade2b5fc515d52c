// This process as a client of gpuctld: one connection, one stub page at a time, one thread that keeps both.
//
// The daemon may die and come back at any moment; the program must not notice. So the last stub page stays mapped
// and its grant stays in force until a new connection brings a new page, and nothing here blocks a caller but attach().
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ipc/connection.h"
#include "ipc/stub_map.h"
#include "ipc/types.h"

namespace gpuslice {

/// What the daemon and the environment say about durations.
struct Targets {
  std::chrono::microseconds latency{50};     ///< kernels shorter than this run in their original form
  std::chrono::microseconds block_task{20};  ///< a chunk of block-tasks takes at most about this long
};

class Client {
 public:
  /// The one of this process; never destroyed.
  static Client& get();

  /// True when kernels of this process are to be rewritten: GPUCTL_SOCKET or GPUCTL_SLICE is set, or attach() was
  /// called.
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }

  /// Called once the driver is initialised, with the uuids of the devices the program sees, in its order. Tries to
  /// attach at once (so that the first launch already knows its grant), then starts the thread that keeps the
  /// connection.
  void start(std::vector<std::string> device_uuids);

  /// Attaches to `slice`, or moves there. Any thread; waits for the daemon. Before start() it only notes the wish, so
  /// that start() does it.
  gpuctl::Result<void> attach(const std::string& slice);

  std::string slice() const;

  /// The stub page in force, or null while none ever came. Pages are never unmapped, so the pointer stays valid.
  gpuctl::ipc::Stub* stub() const { return stub_.load(std::memory_order_acquire); }

  /// The grant in force on a device of the program; null without a daemon, or for a device that it does not know.
  const gpuctl::ipc::Grant* grant(int device) const;

  /// Tells the daemon to look at once (eventfd): demand rose above the grant, or a shrink holds. No-op when not
  /// attached.
  void kick() const;

  /// Called by the client's thread every `kReportInterval` and before it ends; returns kernels not yet reported.
  using KernelSource = std::vector<gpuctl::ipc::Kernel> (*)(bool all);
  void set_kernel_source(KernelSource source) { kernel_source_.store(source); }

  /// Called by the client's thread, whether there is a daemon or not; says how long until the next call.
  using Tick = std::chrono::milliseconds (*)();
  void set_tick(Tick tick) { tick_.store(tick); }

  gpuctl::Result<void> set_hint(int priority);

  /// What the daemon says to holding so many bytes of a device's memory (HoldMemory of io.gpuctl).
  struct MemoryAnswer {
    bool granted = true;
    std::optional<std::uint64_t> total, free;
  };
  /// Waits for the daemon; an error when there is none.
  gpuctl::Result<MemoryAnswer> ask_memory(int device, std::uint64_t bytes);
  /// Says what is held, without waiting for an answer.
  void tell_memory(int device, std::uint64_t bytes);

  /// Says that the driver broke the context on a device for good, with which error, without waiting for an answer.
  void report_fault(int device, int error, const std::string& name);

  Targets targets() const;

  /// In a forked child: forgets connection and thread (they belong to the parent).
  void forget_after_fork();

 private:
  Client();
  gpuctl::Result<void> connect_locked(bool resumed);
  void run();
  void report_kernels(bool all);

  std::atomic<bool> wanted_{false};
  std::atomic<gpuctl::ipc::Stub*> stub_{nullptr};
  std::atomic<int> kick_fd_{-1};
  std::atomic<KernelSource> kernel_source_{nullptr};
  std::atomic<Tick> tick_{nullptr};
  mutable std::mutex mutex_;  ///< guards what follows
  std::string socket_;
  std::string slice_;
  std::vector<std::string> uuids_;
  std::vector<gpuctl::ipc::StubMap> stubs_;  ///< all pages ever in force: GPUs may still poll old ones
  std::unique_ptr<gpuctl::ipc::Connection> connection_;
  Targets targets_;
  bool started_ = false;
  bool attached_before_ = false;
};

}  // namespace gpuslice
