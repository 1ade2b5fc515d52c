// The contexts that this process manages, and how their management begins and ends.
#pragma once

#include <cuda.h>

#include <chrono>
#include <vector>

#include "libgpuslice/launch/context.h"

namespace gpuslice {

/// Any thread.
class Contexts {
 public:
  /// The managed state of the current context. The first call makes it. Null when the context cannot be managed.
  static Context* current();
  static std::vector<Context*> all();
  /// The program is about to destroy this context. Its agent ends before this returns. The state in this process stays
  /// allocated.
  static void forget(CUcontext handle);
  /// The same for one that is gone already, or may be. AgentsHeld lived while it went.
  static void forget_gone(CUcontext handle);

  /// The process begins to exit. From now on nothing is managed. Waits for the agents, at most kLongestExit, and where
  /// programs share the GPU for the process's own work there, at most kLongestWork: workers that read memory of a
  /// process that is gone are a fault for all programs on the GPU. When this returns, no agent begins a driver call any
  /// more. What is on the GPU still completes. Where this process has managed nothing, it only counts its launches.
  static void end_all_at_exit();
  /// The process is about to become another program. Waits as end_all_at_exit() does, and for kernels in original form
  /// too, in the same time: MPS takes their end for a fault. Until exec_failed() agents rest, other threads' launches
  /// wait, and the process is no client. Returns false, with nothing done, where this process has managed nothing, or
  /// exits.
  static bool begin_exec();
  /// It is still the same program: all is as before begin_exec(), once the daemon has answered.
  static void exec_failed();
  static constexpr std::chrono::milliseconds kLongestExit{20}, kLongestWork{10'000};
  /// Registers an exit handler that brings memory back from the host (swap.h) and calls end_all_at_exit(). It runs
  /// before every exit handler that the driver has registered so far.
  static void end_before_driver();
  static bool exiting();
  /// Whether the process is about to become another program.
  static bool execs();
  /// Whether this process has managed a context. Contexts of a parent process do not count. Takes no lock; safe in a
  /// child of vfork.
  static bool any_managed();

  /// Context::rescue() for all contexts.
  static void rescue_stuck();
  /// Makes what forget_after_fork() uses.
  static void make_registry();
  /// In a forked child.
  static void forget_after_fork();
};

/// While an object of this class lives, no agent of the device calls the driver or touches memory of its context.
class AgentsHeld {
 public:
  explicit AgentsHeld(CUdevice device);
  ~AgentsHeld();
  AgentsHeld(const AgentsHeld&) = delete;
  AgentsHeld& operator=(const AgentsHeld&) = delete;

 private:
  std::vector<Context*> contexts_;
};

}  // namespace gpuslice
