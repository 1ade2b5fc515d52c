#include "softgpu/device/executor.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "softgpu/device/pacing.h"
#include "softgpu/device/printed.h"
#include "softgpu/host/thread.h"
#include "softgpu/table/device_limits.h"

namespace gpuctl::softgpu {
namespace {

using namespace std::chrono_literals;

/// How soon a process that waits for SMs notices that their owner is dead.
constexpr auto kSweepInterval = 10ms;
/// How often a process that waits for its context's turn looks whether the other's is over.
constexpr auto kTurnInterval = 200us;
/// How soon a full table is tried again. A normal load does not have 512 kernels at the heads of streams at one time.
constexpr auto kFullTableRetry = 1ms;

engine::Dim3 unfold(std::uint64_t index, const engine::Dim3& grid) {
  engine::Dim3 result;
  result.x = static_cast<std::uint32_t>(index % grid.x);
  result.y = static_cast<std::uint32_t>(index / grid.x % grid.y);
  result.z = static_cast<std::uint32_t>(index / grid.x / grid.y);
  return result;
}

}  // namespace

struct Executor::Run {
  const KernelLaunch* launch = nullptr;
  const std::atomic<bool>* abort = nullptr;
  const std::function<void(const KernelFault&)>* on_fault = nullptr;
  std::atomic<std::uint64_t> blocks{0};  ///< to be run; fewer than in the grid after drop_queued()
  std::uint64_t gridid = 0;
  std::atomic<std::uint64_t> next{0};  ///< linear index of the next block to start

  // Guarded by the table's mutex.
  KernelRow* row = nullptr;
  std::uint32_t taken[kMaxSms] = {};  ///< of row->granted, already handed to threads
  std::uint64_t finished = 0;

  std::mutex mutex;  ///< guards the members below; run() frees this object once it has seen `done` under it
  std::condition_variable changed;
  bool done = false;
  bool faulted = false;
};

Executor::Executor(Table& table, Activity& activity, std::uint64_t warp_instruction_ns)
    : table_(table), activity_(activity), warp_instruction_ns_(warp_instruction_ns), numbers_(table.sms()) {}

void Executor::run(const KernelLaunch& launch, const std::atomic<bool>& abort,
                   const std::function<void(const KernelFault&)>& on_fault) {
  std::call_once(watcher_, [this] { start_thread("softgpu-table", [this] { watch_table(); }); });
  Run run;
  run.launch = &launch;
  run.abort = &abort;
  run.on_fault = &on_fault;
  run.blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  while (!start(run)) {
    if (abort.load()) return;
    std::this_thread::sleep_for(kFullTableRetry);
  }
  std::unique_lock lock(run.mutex);
  run.changed.wait(lock, [&] { return run.done; });
}

void Executor::drop_queued(const std::atomic<bool>& abort) {
  std::vector<Task> tasks;
  std::vector<Run*> over;
  {
    const Table::Lock lock(table_);
    if (table_.closed()) return;
    for (Run* run : active_) {
      if (run->abort != &abort) continue;
      std::uint64_t placed = 0;
      for (std::uint32_t sm = 0; sm < table_.sms(); ++sm)
        placed += run->row->granted[sm].load(std::memory_order_relaxed);
      run->blocks = placed;
      run->row->blocks.store(placed, std::memory_order_relaxed);
      if (run->finished == placed) over.push_back(run);
    }
    for (Run* run : over) remove(*run);
    table_.place();  // places the kernels behind them
    tasks = collect();
  }
  post(tasks, 0);
  for (Run* run : over) notify(*run);
}

/// Removes a run that is over. The caller holds the table's mutex.
void Executor::remove(Run& run) {
  table_.remove(*run.row);
  active_.erase(std::find(active_.begin(), active_.end(), &run));
}

/// `run` may be gone when this returns.
void Executor::notify(Run& run) {
  const std::lock_guard lock(run.mutex);
  run.done = true;
  run.changed.notify_all();
}

bool Executor::start(Run& run) {
  std::vector<Task> tasks;
  {
    const Table::Lock lock(table_);
    if (table_.closed()) return false;    // the process is ending; its threads stop where they are
    if (run.abort->load()) return false;  // drop_queued() may have run already
    const std::uint32_t threads = run.launch->block.x * run.launch->block.y * run.launch->block.z;
    KernelRequest request;
    request.blocks = run.blocks;
    request.threads = occupied_threads(threads);
    request.shared = occupied_shared(run.launch->kernel->static_shared + run.launch->dynamic_shared);
    request.urgency = run.launch->urgency;
    request.allowed = run.launch->allowed;
    run.row = table_.enqueue(request);
    if (run.row == nullptr) return false;
    run.gridid = run.row->ticket.load(std::memory_order_relaxed);
    active_.push_back(&run);
    table_.place();
    tasks = collect();
    const auto own = std::count_if(tasks.begin(), tasks.end(), [&](const Task& task) { return task.run == &run; });
    // The watcher handles blocks that must wait.
    if (static_cast<std::uint64_t>(own) < run.blocks) table_.kick();
  }
  post(tasks, 0);
  return true;
}

/// Takes over the blocks granted to this process since the last call. The caller holds the table's mutex.
std::vector<Executor::Task> Executor::collect() {
  std::vector<Task> tasks;
  for (Run* run : active_) {
    for (std::uint32_t sm = 0; sm < table_.sms(); ++sm) {
      const std::uint32_t granted = run->row->granted[sm].load(std::memory_order_relaxed);
      for (; run->taken[sm] != granted; ++run->taken[sm]) {
        tasks.push_back({run, sm, numbers_.enter(sm)});
      }
    }
  }
  return tasks;
}

/// Hands tasks[first...] to worker threads, new ones if no idle one is left.
void Executor::post(const std::vector<Task>& tasks, std::size_t first) {
  if (first >= tasks.size()) return;
  std::size_t missing = 0;
  {
    const std::lock_guard lock(mutex_);
    tasks_.insert(tasks_.end(), tasks.begin() + static_cast<std::ptrdiff_t>(first), tasks.end());
    missing = tasks_.size() > idle_ ? tasks_.size() - idle_ : 0;
    missing = std::min(missing, tasks.size() - first);
  }
  for (std::size_t i = first; i < tasks.size(); ++i) ready_.notify_one();
  for (; missing > 0; --missing) {
    // If the system has no more threads, the blocks wait for a worker to become free.
    if (!start_thread("softgpu-block", [this] { work(); })) break;
  }
}

/// The executor owns it, not the thread, so that leak checkers of a forked child still see an owner.
engine::BlockScratch& Executor::new_scratch() {
  const std::lock_guard lock(mutex_);
  return scratches_.emplace_back();
}

void Executor::work() {
  engine::BlockScratch& scratch = new_scratch();
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      ++idle_;
      ready_.wait(lock, [this] { return !tasks_.empty(); });
      --idle_;
      task = tasks_.front();
      tasks_.pop_front();
    }
    BlockClock::Clock::duration carried{};
    while (task.run != nullptr) {
      const Run* run = task.run;
      carried = run_block(task, scratch, carried);
      task = finish(task);
      if (task.run != run) carried = {};
    }
  }
}

/// Runs one block. Takes and returns the lead of the model over the host (pacing.h).
BlockClock::Clock::duration Executor::run_block(const Task& task, engine::BlockScratch& scratch,
                                                BlockClock::Clock::duration carried) {
  Run& run = *task.run;
  const KernelLaunch& launch = *run.launch;
  const Activity::Scope scope(activity_);
  const std::uint64_t index = run.next.fetch_add(1, std::memory_order_relaxed);
  if (run.abort->load()) return {};
  Printed print;
  BlockClock clock(launch.block.x * launch.block.y * launch.block.z, warp_instruction_ns_, carried, *run.abort);
  KernelFault fault;
  engine::BlockLaunch block;
  block.program = launch.program.get();
  block.kernel = launch.kernel;
  block.grid = launch.grid;
  block.block = launch.block;
  block.ctaid = unfold(index, launch.grid);
  block.params = launch.params.data();
  block.dynamic_shared = launch.dynamic_shared;
  block.smid = task.smid;
  block.nsmid = table_.sms();
  block.gridid = run.gridid;
  block.abort = run.abort;
  block.memory = launch.memory;
  block.print = &print;
  struct Pace {
    Executor& executor;
    BlockClock& clock;
    const std::atomic<bool>& abort;
  } pace{*this, clock, *run.abort};
  block.pace_context = &pace;
  block.pace = [](void* context, std::uint64_t warp_instructions) {
    Pace& pace = *static_cast<Pace*>(context);
    pace.executor.await_turn(pace.clock, pace.abort);
    pace.clock.pace(warp_instructions);
  };
  block.fault = &fault.kind;
  const Result<engine::BlockStats> stats = engine::run_block(block, scratch);
  if (stats.has_value()) {
    await_turn(clock, *run.abort);
    const bool more = run.next.load(std::memory_order_relaxed) < run.blocks;
    return clock.finish(stats->warp_instructions, more);
  }
  if (run.abort->load()) return {};
  {
    const std::lock_guard lock(run.mutex);
    if (std::exchange(run.faulted, true)) return {};
  }
  fault.message = stats.error().message;
  (*run.on_fault)(fault);
  return {};
}

/// Returns when the context has its turn. So the GPU switches in the middle of any kernel.
void Executor::await_turn(BlockClock& clock, const std::atomic<bool>& abort) {
  if (table_.has_turn()) return;
  const auto began = BlockClock::Clock::now();
  while (!table_.has_turn() && !abort.load(std::memory_order_relaxed)) table_.wait_for_turn(kSweepInterval);
  clock.pause(BlockClock::Clock::now() - began);
}

/// Frees the slot of a finished block. Returns the block that this thread runs next, if one was placed meanwhile.
Executor::Task Executor::finish(const Task& task) {
  Run& run = *task.run;
  std::vector<Task> tasks;
  bool last = false;
  {
    const Table::Lock lock(table_);
    if (table_.closed()) return {};
    table_.free_block(*run.row, task.sm);
    numbers_.leave(task.sm);
    last = ++run.finished == run.blocks;
    if (last) remove(run);
    table_.place();
    tasks = collect();
  }
  post(tasks, 1);
  if (last) notify(run);
  return tasks.empty() ? Task{} : tasks.front();
}

/// Receives blocks that other processes placed. Reclaims dead processes' slots while blocks of this process wait for
/// some.
void Executor::watch_table() {
  std::chrono::steady_clock::time_point swept{};
  while (true) {
    const std::uint32_t seen = table_.wake_count();
    std::vector<Task> tasks;
    bool waiting = false;
    {
      const Table::Lock lock(table_);
      if (table_.closed()) return;
      tasks = collect();
      for (const Run* run : active_) {
        std::uint64_t taken = 0;
        for (std::uint32_t sm = 0; sm < table_.sms(); ++sm) taken += run->taken[sm];
        waiting = waiting || taken < run->blocks;
      }
      waiting = waiting || (!active_.empty() && !table_.has_turn());
    }
    post(tasks, 0);
    if (!waiting) {
      table_.wait(seen, 24h);
      continue;
    }
    table_.wait(seen, table_.has_turn() ? std::chrono::nanoseconds(kSweepInterval) : kTurnInterval);
    if (table_.wake_count() != seen) continue;
    const Table::Lock lock(table_);
    if (table_.closed()) return;
    bool changes = !table_.has_turn();
    if (const auto now = std::chrono::steady_clock::now(); now - swept >= kSweepInterval) {
      changes = table_.sweep_dead() || changes;
      swept = now;
    }
    if (changes && table_.place()) table_.kick();
  }
}

}  // namespace gpuctl::softgpu
