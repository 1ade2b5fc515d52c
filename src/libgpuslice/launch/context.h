// One CUDA context under management: launch blocks, streams with launches outstanding, and the agent thread.
//
// Locks. `Stream::issue` is held over a launch, so that the books name launches in the stream's order. `mutex_` guards
// bookkeeping and is never held over a driver call, because a driver call may block until the GPU makes progress, which
// may need the agent. Order: issue, then mutex_. The agent takes only mutex_.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ipc/stub.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/client/grant_view.h"
#include "libgpuslice/driver/clock.h"
#include "libgpuslice/driver/stream_key.h"
#include "libgpuslice/kernels/kernels.h"
#include "libgpuslice/launch/agent_stuck.h"
#include "libgpuslice/launch/sent_workers.h"
#include "libgpuslice/launch/slots.h"
#include "libgpuslice/launch/top_up_tries.h"
#include "libgpuslice/launch/work_time.h"
#include "libgpuslice/streams/opaque.h"
#include "libgpuslice/streams/quiet.h"

namespace gpuslice {

/// A launch as the program asked for it.
struct LaunchConfig {
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t shared;                       ///< dynamic, bytes
  CUstream stream;                            ///< never null: CU_STREAM_LEGACY stands for the default stream
  std::vector<CUlaunchAttribute> attributes;  ///< those that the persistent form keeps

  std::uint64_t block_tasks() const { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }
  std::uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

/// A persistent launch from its issue until every worker has left.
struct Launch {
  Instance* instance = nullptr;
  CUfunction function = nullptr;  ///< Instance::persistent when it began: the program may take that away meanwhile
  LaunchConfig config;
  std::vector<std::byte> params;  ///< packed, LaunchArgs included: what the agent launches again
  gpuctl::ptx::LaunchArgs args{};
  std::uint32_t per_sm = 1;  ///< workers one SM holds: one CapSM
  std::uint32_t chunk = 1;   ///< most block-tasks per claim
  std::uint32_t slot = 0;
  std::uint32_t launched = 0;       ///< workers of all grids so far
  SentWorkers sent;                 ///< those in grids of the agent
  WorkTime work;                    ///< of as many as the SMs hold that it was allowed
  std::uint64_t issued_ns = 0;      ///< CLOCK_MONOTONIC
  TopUpTries tries;                 ///< of the agent, to add workers
  std::uint32_t claimed = 0;        ///< of a guarded kernel: block-tasks when the agent last looked
  std::uint64_t wanted_ns = 0;      ///< since when it could have more workers if it had started; 0: not
  std::uint64_t given_ns = 0;       ///< when all its workers but the holder were sent at once; 0: they were not
  std::uint32_t topped_up_for = 0;  ///< the range of SMs it was allowed at the latest top-up
  std::uint64_t complete_ns = 0;    ///< when the agent saw it complete
  std::atomic<bool> issued{false};  ///< the launching thread is done with it
  bool failed = false;              ///< the driver refused it: nothing runs. Read after `issued`
  std::uint64_t graph = 0;          ///< of a kernel in a graph: the number of that graph's launch
  bool beside = false;              ///< kernels of that launch may run beside each other
  std::uint64_t number = 0;         ///< counts the context's launches, from 1
  std::uint64_t evict_ns = 0;       ///< what its evictions took, together, and coming back
  std::uint32_t evictions = 0;
  bool counts = true;  ///< as one of what is in the stream: of a graph launch only its last kernel does

  bool once() const { return instance->kernel->once; }
};

/// Launches, and launches of graphs, that may wait in a stream: below what makes the driver block in a launch (about
/// 1,000 entries a stream).
inline constexpr std::size_t kMaxQueuedPerStream = 384;

struct Stream {
  CUstream handle = nullptr;
  std::mutex issue;
  std::deque<std::unique_ptr<Launch>> outstanding;  ///< oldest first
  std::size_t queued = 0;                           ///< launches, and launches of graphs, among these
  std::uint32_t limit = 0;  ///< which of Polled::limits is its own while it has launches outstanding; 0: none
  bool latency_critical = false;

  /// Calls visit(launch) for those that may be running: the oldest, and what may run beside it in the same graph.
  template <class Visit>
  void visit_heads(Visit visit) const {
    const Launch& oldest = *outstanding.front();
    for (const std::unique_ptr<Launch>& launch : outstanding) {
      if (launch.get() != &oldest && !(oldest.beside && launch->graph == oldest.graph)) break;
      visit(*launch);
    }
  }
};

/// Of one graph no more kernels than these, its first, run in persistent form: with launch blocks for a quarter of all
/// that there can be, others find some too.
inline constexpr std::size_t kMostGraphKernels = kSlots / 4;

/// A kernel of a graph that is about to be launched, and that could run in persistent form.
struct GraphCandidate {
  Instance* instance;
  const LaunchConfig* config;
  const std::vector<std::byte>* params;  ///< as for Context::launch()
};

class Context final : public Opaque::Owner, public LaunchSource {
 public:
  /// The managed state of the current context, made at the first call; null when that is not possible.
  static Context* current();
  /// All contexts of the process.
  static std::vector<Context*> all();
  /// The program is about to destroy this context: its agent ends before this returns. Its memory in this process
  /// stays.
  static void forget(CUcontext handle);
  /// The same for all contexts of the device.
  static void forget_device(CUdevice device);
  /// The process begins to exit: from now on nothing is managed, and no agent calls the driver. Waits for the agents,
  /// no longer than kLongestExit. What is on the GPU still completes.
  static constexpr std::chrono::milliseconds kLongestExit{20};
  /// How long a thread of the program waits for an agent that is in the middle of a driver call, where no exit is under
  /// way.
  static constexpr std::chrono::seconds kPatience{2};
  static void end_all_at_exit();
  static std::uint64_t exit_deadline_ns();
  /// Has that called at the exit of the process, before all that the driver has asked for until now.
  static void end_before_driver();
  static bool exiting();
  /// Whether any context was ever managed in this process, and not in a parent of it. No lock; safe in a child of
  /// vfork.
  static bool any_managed();
  /// For a thread that never calls the driver, some times a second. Where an agent is stuck in a driver call, which may
  /// wait for an evicted launch that waits for the agent, the workers that rest are told to work after all.
  static void rescue_stuck();
  /// Says anew what all contexts have to do, of which something else was said meanwhile.
  static void publish_all();
  /// In a forked child.
  static void forget_after_fork();

  /// This context's copy of a kernel, made at the first call. The context must be current. Null: cannot be launched
  /// in persistent form here, or not yet: loading its code blocks until the device is idle, and this is neither the
  /// kernel's first launch, where its original would be loaded too, nor a moment for that (may_load.h).
  Instance* instance_of(KernelInfo& kernel);
  /// Loads it, with such a moment.
  void load_instance(KernelInfo& kernel);

  enum class Outcome {
    kLaunched,  ///< in persistent form
    kAsItIs,    ///< not launched: so short that it may run as it is
    kCannot,    ///< not launched: there is no persistent form of this launch
  };
  /// `params` is the packed parameter block, args_offset + sizeof(LaunchArgs) bytes. The context must be current.
  /// `result` is what the driver said, if it was asked; `why`, with kCannot, as `gpuctl explain` goes on after
  /// "launched", if there is more to say than that its shape has no such form.
  Outcome launch(Instance& instance, LaunchConfig&& config, std::vector<std::byte>&& params, CUresult* result,
                 const char** why);

  /// Launches a graph. The candidates, at most kMostGraphKernels, come in an order in which they may run; `branches`:
  /// some of them may run beside each other. For each of them, in that order, `arm(number, launch)` is called, to put
  /// the kernel into the graph as the launch says or, null, in its original form; then `launch_it`. Neither is called
  /// with a lock held that the agent takes. Returns what launch_it() does, or the error with which a kernel could not
  /// be put into the graph in its original form either.
  using Arm = std::function<CUresult(std::size_t, const Launch*)>;
  CUresult launch_graph(CUstream stream, const std::vector<GraphCandidate>& candidates, bool branches, const Arm& arm,
                        const std::function<CUresult()>& launch_it);

  void quiesce() override;
  void resume_launches() override;

  /// How long kernels keep their original form after streams of the program held up all those of the agent.
  static constexpr std::uint64_t kCrowdedForNs = 10'000'000'000;

  void set_latency_critical(CUstream stream, bool on);
  /// The program destroys the stream; its launches, if any, still complete.
  void stream_destroyed(CUstream stream);

  /// What the daemon grants; the range of the granted SMs that this stream may use (gpuctl::pack_range).
  const GrantView& view() const { return view_; }
  std::uint32_t allowed(const Stream& stream) const;
  Opaque& opaque() { return opaque_; }
  /// The program is about to put something into a stream that may wait there. What guarded kernels (KernelInfo::once)
  /// leave when they are evicted only new workers can take, and these must come to the GPU though the program's stream
  /// holds up what is behind it in its hardware queue (worker_streams.h). That is certain with one such stream, not
  /// with several. So a program's second stream waits here until no guarded launch is incomplete; from then on there
  /// are none.
  void use_stream(CUstream stream);
  /// A kernel of so many blocks, in original form, is about to be launched where none was on the GPU.
  void opaque_started(std::uint64_t blocks, const OpaqueJob& job) override;
  void at_gate(Waiting& one) override;
  void past_gate(Waiting& one) override;
  /// One launch, of a kernel or a graph, goes to the driver as it came.
  void count_original_launch() { launched_as_they_are_.fetch_add(1, std::memory_order_relaxed); }
  /// No launch is known to be on the GPU. The context need not be current.
  bool idle();
  CUcontext handle() const { return context_; }

  /// Nothing is managed here any more: the driver said that the context is broken, the program ends it, or the process
  /// exits. Whoever waits for launches does not wait any longer.
  bool ended() const override { return ended_.load(std::memory_order_acquire); }
  /// Takes note of what the driver answered to any call in this context. An error that breaks the context ends all that
  /// is managed there; the agent tells the daemon.
  void heed(CUresult result);

  /// While one of these lives the agent neither calls the driver nor touches memory that belongs to the context.
  class AgentHeld {
   public:
    explicit AgentHeld(CUdevice device);
    ~AgentHeld();
    AgentHeld(const AgentHeld&) = delete;
    AgentHeld& operator=(const AgentHeld&) = delete;

   private:
    std::vector<Context*> contexts_;
  };

 private:
  friend class Agent;

  explicit Context(CUcontext context, int device_index, std::uint32_t sms, Slots slots);
  static Context* create(CUcontext context);

  Instance* make_instance(KernelInfo& kernel);
  void use_stream(std::unique_lock<std::mutex>& lock, CUstream handle);
  Stream& stream_of(CUstream handle);
  /// What to launch, and how many workers one SM holds of it; 0: it has no persistent form, or not of this shape.
  struct Fit {
    CUfunction function;
    int per_sm;
  };
  Fit fit_of(Instance& instance, const LaunchConfig& config);
  const char* why_unguarded(const Instance& instance) const;
  const char* why_crowded(const Stream& stream) const;
  bool short_enough(Instance& instance, std::uint64_t tasks, std::uint32_t per_sm);
  void plan(Launch& launch, const Stream& stream);
  void book(Stream& stream, std::unique_ptr<Launch> owned, std::uint32_t slot);
  std::unique_ptr<Launch> prepare(const GraphCandidate& candidate);
  std::uint32_t workers_for(const Launch& launch, std::uint32_t allowed) const;
  static CUresult issue(const Launch& launch, CUstream stream, std::uint32_t workers, std::vector<std::byte>& params);
  std::uint32_t demand_of(const Launch& launch) const;
  std::uint32_t demand_of(const Stream& stream) const;
  void choose_limit(Stream& stream) const;
  void divide_among_streams();
  void set_limits(gpuctl::Polled& polled) const;
  void divide_if_shared() {
    if (active_.size() > 1) divide_among_streams();
  }
  void publish_usage();
  /// For policies for jobs (job_report.cc), both with mutex_. True: the daemon is to hear of it now.
  bool tell_head(std::uint32_t wanted);
  const OpaqueJob* opaque_head(const Launch* oldest) const;
  void record(const Launch& launch, std::int64_t clock_offset, std::uint64_t whole_from_ns);
  /// Without it.
  void record(const TimedLaunch& launch) const;

  const CUcontext context_;
  GrantView view_;
  CUdeviceptr polled_address_ = 0;  ///< of GrantView::polled() for the GPU; guarded by mutex_
  std::array<gpuctl::Polled::Limit, std::size(gpuctl::Polled{}.limits)> limits_;  ///< as polled; guarded by mutex_

  std::mutex mutex_;
  std::condition_variable changed_;
  Slots slots_;
  std::map<StreamKey, std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Stream>> orphans_;  ///< destroyed by the program with launches outstanding
  std::vector<std::unique_ptr<Launch>> leaving_;  ///< complete, but workers may still be on their way out
  std::vector<Stream*> active_;                   ///< streams with launches outstanding
  int quiescing_ = 0;
  Targets targets_;
  std::uint32_t outstanding_ = 0;
  std::optional<StreamKey> only_stream_;  ///< that the program has used so far
  bool several_streams_ = false;
  std::uint64_t graph_launches_ = 0;
  std::uint32_t told_demand_ = 0;
  std::uint32_t told_part_ = 0;  ///< what it was granted when it last said that it began with less than all
  std::uint64_t launches_ = 0;   ///< persistent ones so far
  std::uint64_t told_head_ = 0;  ///< ipc::Head::launch as last written
  Opaque opaque_{view_, *this};
  std::atomic<std::uint64_t> crowded_until_ns_{0};      ///< why_crowded()
  std::atomic<bool> opaque_busy_{false};                ///< such kernels may be on the GPU
  std::uint32_t opaque_demand_ = 0;                     ///< theirs, in SMs; guarded by mutex_, as are the next four
  OpaqueJob opaque_job_;                                ///< of those on the GPU, the one that policies for jobs see
  Waiting* at_gate_ = nullptr;                          ///< who waits longest for a grant
  std::uint64_t told_opaque_ns_ = 0;                    ///< OpaqueJob::issued_ns of what was last a head ...
  std::uint64_t told_opaque_ = 0;                       ///< ... and its number
  std::atomic<std::uint32_t> launched_as_they_are_{0};  ///< launches in original form that Usage does not count yet
  std::atomic<bool> agent_asleep_{false};
  std::atomic<std::uint32_t> agent_futex_{0};  ///< +1 to wake the agent
  /// A policy for jobs is in force, and a launch is outstanding again.
  std::atomic<bool> work_begins_{false};

  std::atomic<bool> ended_{false};
  std::atomic<CUresult> fault_{CUDA_SUCCESS};  ///< why, if the driver said that the context is broken
  std::atomic<int> agent_holds_{0};            ///< AgentHeld that live
  /// What the agent is at, for those who wait for it.
  enum class AgentIs { kAtWork, kHeld, kOver };
  std::atomic<AgentIs> agent_is_{AgentIs::kAtWork};
  DriverCalls driver_calls_;  ///< the agent's
  AgentLook seen_by_rescue_;  ///< when rescue() last looked

  void rescue();
  void let_holders_work();
  void end();
  void end_with_agent();
  bool wait_until_agent_is(AgentIs what, std::chrono::steady_clock::time_point until);

  std::atomic<int> waiting_for_agent_{0};  ///< threads of the program held up until launches complete

  void wake_agent();
  void rouse_agent();
  /// Waits until the agent changed something, or a moment; callers check again.
  void wait_for_agent(std::unique_lock<std::mutex>& lock);
};

}  // namespace gpuslice
