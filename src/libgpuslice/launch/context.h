// One CUDA context under management: its launch blocks, its streams with outstanding launches, and its agent thread.
//
// Locks. A thread holds `Stream::issue` while it launches, so that the books list launches in the stream's order.
// `mutex_` guards the books. No thread holds it over a driver call: a driver call may block until the GPU makes
// progress, and that progress may need the agent. Lock order: issue, then mutex_. The agent takes only mutex_.
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
  std::uint32_t shared;                       ///< dynamic shared memory, in bytes
  CUstream stream;                            ///< never null: CU_STREAM_LEGACY stands for the default stream
  std::vector<CUlaunchAttribute> attributes;  ///< the attributes that the persistent form keeps

  std::uint64_t block_tasks() const { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }
  std::uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

/// A persistent launch from its issue until every worker has left.
struct Launch {
  Instance* instance = nullptr;
  /// Instance::persistent at the time of the launch; the program may clear that one later.
  CUfunction function = nullptr;
  LaunchConfig config;
  /// The packed parameter block, LaunchArgs included; the agent uses it to launch more workers.
  std::vector<std::byte> params;
  gpuctl::ptx::LaunchArgs args{};
  std::uint32_t per_sm = 1;  ///< workers that one SM holds: one CapSM
  std::uint32_t chunk = 1;   ///< most block-tasks per claim
  std::uint32_t slot = 0;
  std::uint32_t launched = 0;       ///< workers of all grids so far
  SentWorkers sent;                 ///< workers in the agent's grids
  WorkTime work;                    ///< of the workers that fit on the SMs it was allowed
  std::uint64_t issued_ns = 0;      ///< CLOCK_MONOTONIC
  TopUpTries tries;                 ///< the agent's tries to add workers
  std::uint32_t claimed = 0;        ///< guarded kernels only: block-tasks claimed when the agent last looked
  std::uint64_t wanted_ns = 0;      ///< since when it could use more workers but has not started; 0: it is not so
  std::uint64_t given_ns = 0;       ///< when the agent sent all workers but the holder at once; 0: it did not
  std::uint32_t topped_up_for = 0;  ///< the range of SMs it was allowed at the latest top-up
  std::uint64_t complete_ns = 0;    ///< when the agent saw it complete
  std::atomic<bool> issued{false};  ///< set when the launching thread no longer uses this object
  bool failed = false;              ///< the driver refused the launch, so nothing runs. Read it after `issued`
  std::uint64_t graph = 0;          ///< number of the graph launch that this kernel belongs to; 0: none
  bool beside = false;              ///< kernels of that graph launch may run at the same time
  std::uint64_t number = 0;         ///< number of this launch in the context, from 1
  std::uint64_t evict_ns = 0;       ///< time that its evictions took in all, including the return of its workers
  std::uint32_t evictions = 0;
  bool counts = true;  ///< whether it counts in Stream::queued; of a graph launch only the last kernel does

  bool guarded() const { return instance->kernel->guarded; }
};

/// Most launches, of kernels and of graphs, that may wait in a stream. It is below the number at which the driver
/// blocks in a launch (about 1,000 entries per stream).
inline constexpr std::size_t kMaxQueuedPerStream = 384;

struct Stream {
  CUstream handle = nullptr;
  std::mutex issue;
  std::deque<std::unique_ptr<Launch>> outstanding;  ///< oldest first
  std::size_t queued = 0;                           ///< launches of kernels and of graphs in `outstanding`
  std::uint32_t limit = 0;  ///< index of its own entry in Polled::limits while it has outstanding launches; 0: none
  bool latency_critical = false;

  /// Calls visit(launch) for each launch that may be running: the oldest, and those of the same graph launch that may
  /// run at the same time.
  template <class Visit>
  void visit_heads(Visit visit) const {
    const Launch& oldest = *outstanding.front();
    for (const std::unique_ptr<Launch>& launch : outstanding) {
      if (launch.get() != &oldest && !(oldest.beside && launch->graph == oldest.graph)) break;
      visit(*launch);
    }
  }
};

/// Most kernels of one graph that run in persistent form; these are the first ones of the graph. They need a launch
/// block each, and a quarter of all launch blocks leaves some for other launches.
inline constexpr std::size_t kMostGraphKernels = kSlots / 4;

/// A kernel of a graph that is about to be launched and that could run in persistent form.
struct GraphCandidate {
  Instance* instance;
  const LaunchConfig* config;
  const std::vector<std::byte>* params;  ///< packed as for Context::launch()
};

class Context final : public Opaque::Owner, public LaunchSource {
 public:
  /// The managed state of the current context. The first call makes it. Null when the context cannot be managed.
  static Context* current();
  /// All contexts of the process.
  static std::vector<Context*> all();
  /// The program is about to destroy this context. Its agent ends before this returns. The state in this process stays
  /// allocated.
  static void forget(CUcontext handle);
  /// Does the same for all contexts of the device.
  static void forget_device(CUdevice device);
  /// The process begins to exit. From now on nothing is managed. Waits for the agents, at most kLongestExit. When this
  /// returns, no agent begins a driver call any more. What is on the GPU still completes.
  static constexpr std::chrono::milliseconds kLongestExit{20};
  /// How long a thread of the program waits for an agent that is in a driver call, outside of process exit.
  static constexpr std::chrono::seconds kPatience{2};
  static void end_all_at_exit();
  /// Registers end_all_at_exit() as an exit handler, so that it runs before every exit handler that the driver has
  /// registered so far.
  static void end_before_driver();
  static bool exiting();
  /// Whether this process has managed a context. Contexts of a parent process do not count. Takes no lock; safe in a
  /// child of vfork.
  static bool any_managed();
  /// Called several times a second by a thread that never calls the driver. The agent may be stuck in a driver call
  /// that waits for an evicted launch, which in turn waits for the agent. If so, resting holders are told to work.
  static void rescue_stuck();
  /// Publishes the usage of all contexts again, after Activity wrote another demand in its place.
  static void publish_all();
  /// In a forked child.
  static void forget_after_fork();

  /// This context's copy of a kernel. The first call makes it. The context must be current.
  ///
  /// Null: the kernel cannot be launched in persistent form here, or not yet. Loading its code blocks until the device
  /// is idle. So it is loaded at the kernel's first launch, where the program would have loaded the original, or when
  /// nothing else is under way (may_load.h).
  Instance* instance_of(KernelInfo& kernel);
  /// Loads this context's copy, at a time when loading is allowed.
  void load_instance(KernelInfo& kernel);

  enum class Outcome {
    kLaunched,  ///< launched in persistent form
    kAsItIs,    ///< not launched: so short that it may run in original form
    kCannot,    ///< not launched: this launch cannot be in persistent form
  };
  /// Launches in persistent form. `params` is the packed parameter block of args_offset + sizeof(LaunchArgs) bytes. The
  /// context must be current. `result` receives the driver's answer if the driver was called. With kCannot, `why`
  /// receives the text that follows "launched" in `gpuctl explain`; it is unchanged if the only reason is the launch's
  /// shape.
  Outcome launch(Instance& instance, LaunchConfig&& config, std::vector<std::byte>&& params, CUresult* result,
                 const char** why);

  /// Launches a graph. `candidates`, at most kMostGraphKernels, come in an order in which they may run. `branches`:
  /// some of them may run at the same time. Calls `arm(number, launch)` for each candidate in that order, to write the
  /// kernel into the graph as `launch` says, or in its original form if `launch` is null. Then calls `launch_it`.
  /// Neither is called with a lock held that the agent takes. Returns the result of launch_it(), or the error of an
  /// arm() call that could not restore a kernel's original form.
  using Arm = std::function<CUresult(std::size_t, const Launch*)>;
  CUresult launch_graph(CUstream stream, const std::vector<GraphCandidate>& candidates, bool branches, const Arm& arm,
                        const std::function<CUresult()>& launch_it);

  void quiesce() override;
  void resume_launches() override;

  /// How long kernels keep their original form after the program's streams held up all streams of the agent.
  static constexpr std::uint64_t kCrowdedForNs = 10'000'000'000;

  void set_latency_critical(CUstream stream, bool on);
  /// The program destroys the stream. Its outstanding launches still complete.
  void stream_destroyed(CUstream stream);

  /// view(): what the daemon grants. allowed(): the range of the granted SMs that this stream may use
  /// (gpuctl::pack_range).
  const GrantView& view() const { return view_; }
  std::uint32_t allowed(const Stream& stream) const;
  Opaque& opaque() { return opaque_; }
  /// The program is about to put something into a stream that may wait there.
  ///
  /// When a guarded kernel (KernelInfo::guarded) is evicted, only new workers can run the block-tasks that remain.
  /// These workers must reach the GPU although the program's stream holds up everything behind it in its hardware queue
  /// (worker_streams.h). That is certain with one such stream, but not with several. So when the program uses a second
  /// stream, this waits until no guarded launch is incomplete. From then on no kernel is launched in guarded form.
  void use_stream(CUstream stream);
  /// A kernel in original form with this many blocks is about to be launched. No such kernel was on the GPU.
  void opaque_started(std::uint64_t blocks, const OpaqueJob& job) override;
  void at_gate(Waiting& one) override;
  void past_gate(Waiting& one) override;
  /// Counts one launch, of a kernel or a graph, that goes to the driver unchanged.
  void count_original_launch() { launched_as_they_are_.fetch_add(1, std::memory_order_relaxed); }
  /// Whether no launch is known to be on the GPU. The context need not be current.
  bool idle();
  CUcontext handle() const { return context_; }

  /// Whether management here has ended: the driver reported that the context is broken, the program destroys it, or the
  /// process exits. Threads that wait for launches then stop waiting.
  bool ended() const override { return ended_.load(std::memory_order_acquire); }
  /// Examines the driver's answer to any call in this context. An error that breaks the context ends all management
  /// there, and the agent tells the daemon.
  void note_result(CUresult result);

  /// While an object of this class lives, the agent neither calls the driver nor touches memory that belongs to the
  /// context.
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
  /// The function to launch, and how many of its workers one SM holds. 0: it has no persistent form, or none for this
  /// shape.
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
  /// For policies for jobs (job_report.cc). The caller holds mutex_. tell_head() returns true if the daemon must be
  /// told now.
  bool tell_head(std::uint32_t wanted);
  const OpaqueJob* opaque_head(const Launch* oldest) const;
  void record(const Launch& launch, std::int64_t clock_offset, std::uint64_t whole_from_ns);
  /// Called without mutex_.
  void record(const TimedLaunch& launch) const;

  const CUcontext context_;
  GrantView view_;
  CUdeviceptr polled_address_ = 0;  ///< the GPU's address of GrantView::polled(); guarded by mutex_
  /// As written to GrantView::polled(); guarded by mutex_.
  std::array<gpuctl::Polled::Limit, std::size(gpuctl::Polled{}.limits)> limits_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Slots slots_;
  std::map<StreamKey, std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Stream>> orphans_;  ///< streams that the program destroyed with launches outstanding
  std::vector<std::unique_ptr<Launch>> leaving_;  ///< complete, but some workers may not have left yet
  std::vector<Stream*> active_;                   ///< streams with outstanding launches
  int quiescing_ = 0;
  Targets targets_;
  std::uint32_t outstanding_ = 0;
  std::optional<StreamKey> only_stream_;  ///< the only stream that the program has used so far
  bool several_streams_ = false;
  std::uint64_t graph_launches_ = 0;
  std::uint32_t told_demand_ = 0;
  std::uint32_t told_part_ = 0;  ///< the grant at which it last told the daemon that it began with a part of the GPU
  std::uint64_t launches_ = 0;   ///< persistent launches so far
  std::uint64_t told_head_ = 0;  ///< ipc::Head::launch as last written
  Opaque opaque_{view_, *this};
  /// Until when why_crowded() keeps launches in original form; CLOCK_MONOTONIC.
  std::atomic<std::uint64_t> crowded_until_ns_{0};
  std::atomic<bool> opaque_busy_{false};  ///< kernels in original form may be on the GPU
  /// Demand of these kernels, in SMs; guarded by mutex_, as are the next four.
  std::uint32_t opaque_demand_ = 0;
  /// Of these kernels on the GPU, the one that policies for jobs see.
  OpaqueJob opaque_job_;
  /// The launch that has waited longest for a grant; the others follow in its list.
  Waiting* at_gate_ = nullptr;
  /// OpaqueJob::issued_ns of the launch in original form that was last the head ...
  std::uint64_t told_opaque_ns_ = 0;
  std::uint64_t told_opaque_ = 0;                       ///< ... and the number that the head was given
  std::atomic<std::uint32_t> launched_as_they_are_{0};  ///< launches in original form that Usage does not count yet
  std::atomic<bool> agent_asleep_{false};
  std::atomic<std::uint32_t> agent_futex_{0};  ///< +1 wakes the agent
  /// A policy for jobs is in force, and the first launch became outstanding again.
  std::atomic<bool> work_begins_{false};

  std::atomic<bool> ended_{false};
  std::atomic<CUresult> fault_{CUDA_SUCCESS};  ///< the driver's error, if it broke the context
  std::atomic<int> agent_holds_{0};            ///< number of living AgentHeld objects
  /// The agent's state, for threads that wait for it. Once it is over, the agent calls the driver no more.
  enum class AgentIs { kAtWork, kHeld, kOver };
  std::atomic<AgentIs> agent_is_{AgentIs::kAtWork};
  DriverCalls driver_calls_;  ///< counts the agent's driver calls
  AgentLook seen_by_rescue_;  ///< what rescue() saw at its last look

  void rescue();
  void let_holders_work();
  void end();
  void end_with_agent();
  bool wait_until_agent_is(AgentIs what, std::chrono::steady_clock::time_point until);

  std::atomic<int> waiting_for_agent_{0};  ///< threads of the program that wait until launches complete

  void wake_agent();
  void rouse_agent();
  /// Waits until the agent changes something, at most 1 ms. The caller checks its condition again.
  void wait_for_agent(std::unique_lock<std::mutex>& lock);
};

}  // namespace gpuslice
