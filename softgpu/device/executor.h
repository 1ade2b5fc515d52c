// Runs kernels: queues them in the shared table, and runs their blocks on OS threads as they are placed on SMs.
//
// A block holds its SM slot from its placement until its thread has interpreted it and its modelled time is over
// (pacing.h). The thread then frees the slot and places the blocks that fit now, of any process. If a block of this
// process got the slot, the thread runs that block next, without a thread switch. The futex word of this process
// announces blocks that other processes placed; one more thread watches it. That thread also sweeps dead processes out
// of the table while work of this process waits for SMs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "softgpu/device/pacing.h"
#include "softgpu/device/sm_numbers.h"
#include "softgpu/engine/engine.h"
#include "softgpu/host/activity.h"
#include "softgpu/table/table.h"

namespace gpuctl::softgpu {

/// One kernel launch, with all choices made.
struct KernelLaunch {
  std::shared_ptr<const engine::Program> program;
  const engine::Kernel* kernel = nullptr;
  engine::Dim3 grid;
  engine::Dim3 block;
  std::uint32_t dynamic_shared = 0;           ///< bytes
  std::int32_t urgency = 0;                   ///< greater goes first on the GPU
  std::uint64_t allowed = kAnySm;             ///< SMs it may run on (bit = SM)
  const engine::MemoryMap* memory = nullptr;  ///< the memory it may access; outlives the process's kernels
  std::vector<std::byte> params;              ///< laid out as Kernel::params say
};

/// What a kernel did wrong.
struct KernelFault {
  engine::FaultKind kind = engine::FaultKind::kNone;
  std::string message;  ///< names the kernel, the line and the cause
};

class Executor {
 public:
  /// `table` and `activity` must outlive the executor, which lives as long as the process.
  Executor(Table& table, Activity& activity, std::uint64_t warp_instruction_ns);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Queues the kernel and returns when all its blocks have finished. Any thread may call it, several at a time. When
  /// `abort` becomes true, the blocks on SMs end at once. `on_fault` gets the first fault of a block, while other
  /// blocks may still run; the thread that runs the faulty block calls it, with no lock held. A block for which there
  /// is not enough memory is a fault too.
  void run(const KernelLaunch& launch, const std::atomic<bool>& abort,
           const std::function<void(const KernelFault&)>& on_fault);

  /// Removes from the queue the kernels whose `abort` is that one (and true): their blocks without an SM are dropped.
  void drop_queued(const std::atomic<bool>& abort);

 private:
  struct Run;
  struct Task {
    Run* run = nullptr;
    std::uint32_t sm = 0;
    std::uint32_t smid = 0;  ///< its %smid
  };

  bool start(Run& run);
  std::vector<Task> collect();
  void post(const std::vector<Task>& tasks, std::size_t first);
  engine::BlockScratch& new_scratch();
  void work();
  std::chrono::steady_clock::duration run_block(const Task& task, engine::BlockScratch& scratch,
                                                std::chrono::steady_clock::duration carried);
  void await_turn(BlockClock& clock, const std::atomic<bool>& abort);
  Task finish(const Task& task);
  void remove(Run& run);
  static void notify(Run& run);
  void watch_table();

  Table& table_;
  Activity& activity_;
  const std::uint64_t warp_instruction_ns_;
  std::once_flag watcher_;

  std::vector<Run*> active_;  ///< guarded by the table's mutex
  SmNumbers numbers_;         ///< guarded by the table's mutex

  std::mutex mutex_;  ///< guards the members below; taken after the table's mutex is released, never inside it
  std::condition_variable ready_;
  std::deque<Task> tasks_;
  std::deque<engine::BlockScratch> scratches_;  ///< one for each worker thread
  std::size_t idle_ = 0;
};

}  // namespace gpuctl::softgpu
