// The agent: one thread per managed context. It notices completed launches, reports usage to the daemon, adds workers
// to kernels that may have more, and keeps launch blocks ready. It decides nothing: grants come from the daemon.
//
// An eviction needs no agent, since workers read the grant themselves. The agent only measures how long it took. The
// agent puts all its work on the GPU into its own streams of the greatest priority, so that its workers do not wait
// behind the kernel that they are to continue. If the GPU has more than two levels of priority, the program's streams
// never have the greatest one (priority_band.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "libgpuslice/agent/blocked_worker_streams.h"
#include "libgpuslice/agent/clock_offset.h"
#include "libgpuslice/agent/nap_planner.h"
#include "libgpuslice/agent/worker_streams.h"
#include "libgpuslice/launch/context.h"

namespace gpuslice {

class Agent {
 public:
  /// Prepares streams in the current context, which must be that of `context`, and starts the thread. Returns false,
  /// with nothing started, if the driver lacks a needed function.
  static bool start(Context& context);

 private:
  explicit Agent(Context& context) : c_(context) {}
  bool prepare();
  void run();

  void adopt_stub_page();
  void reap();
  void complete(const Launch& launch, std::uint64_t now);
  static bool undisturbed(const Launch& launch, const gpuctl::ptx::HostSlot& host);
  struct Stretch {
    std::uint64_t from_ns = 0;
    std::uint32_t sms = 0;
  };
  Stretch undisturbed_stretch(const Launch& launch, const gpuctl::ptx::HostSlot& host) const;
  static std::uint32_t workers_on(const Launch& launch, std::uint32_t sms);
  void watch_work(Launch& launch, const gpuctl::ptx::HostSlot& host, std::uint32_t allowed);
  double task_time(const Launch& launch, const gpuctl::ptx::HostSlot& host, const Stretch& stretch) const;
  void watch_eviction(std::uint32_t epoch_seen);
  void say_if_at_work();
  void look_for_remaining();
  void record_eviction(gpuctl::ipc::Usage& out, std::uint64_t took_ns);
  std::uint32_t present(const Launch& launch) const;
  struct TopUp {
    Launch* launch;
    std::uint32_t workers;
  };
  std::vector<TopUp> plan_top_ups();
  void top_up(const TopUp& order);
  std::uint64_t look_for_ends();
  bool watch_return(Launch& head, std::uint32_t before, std::uint32_t allowed, std::uint64_t workers);
  void look_for_return();
  void has_returned();
  void look_at_opaque();
  void look_at_time_slice();
  void keep_slots();
  void report_slow();
  void sleep(std::uint32_t futex_seen, std::uint32_t epoch_seen);
  void wait_for_news(std::uint32_t futex_seen, std::uint32_t epoch_seen, std::uint64_t timeout_ns, bool epoch_counts);
  bool wait_while_held();
  void look_for_fault();
  void finish_at_exit();
  bool all_left();

  Context& c_;
  WorkerStreams streams_;
  BlockedWorkerStreams blocked_;
  CUstream housekeeping_ = nullptr;  ///< for zeroing launch blocks
  bool zeroing_ = false;             ///< such a zeroing is under way

  gpuctl::ipc::Stub* stub_ = nullptr;        ///< the stub page whose grant is in force
  bool copies_ = false;                      ///< the GPU cannot map the stub page, so the agent copies grants
  std::vector<gpuctl::Polled*> old_polled_;  ///< of earlier stub pages, which running kernels may still poll
  std::uint32_t epoch_ = 0;
  std::uint32_t granted_ = gpuctl::ipc::kUnlimited;
  std::uint64_t decided_ns_ = 0;
  bool evicting_ = false;  ///< the grant shrank, and workers may still be on SMs outside of it
  /// Workers on SMs that they must leave: not looked yet, copies under way, or none.
  enum class Remaining { kUnknown, kAsked, kNone } remaining_ = Remaining::kNone;
  struct Looked {
    std::uint32_t slot;
    std::uint32_t allowed;  ///< range of SMs
  };
  std::vector<Looked> looked_;       ///< the launches that are looked at
  bool grids_over_ = false;          ///< complete launches wait for late workers, but none of the agent's grids runs
  std::uint64_t busy_since_ns_ = 0;  ///< since when an eviction or more workers are awaited; 0: nothing is
  bool wants_workers_ = false;       ///< some launch needs workers soon
  /// A launch that was evicted and has SMs again, but whose workers are not known to be on them yet.
  Launch* returning_ = nullptr;
  std::uint64_t return_since_ns_ = 0;  ///< when the daemon decided that
  std::uint32_t return_workers_ = 0;   ///< how many workers must be there
  bool return_asked_ = false;          ///< a copy that shows the workers is under way
  bool topped_up_ = false;             ///< workers were added, and the daemon was not told yet
  NapPlanner naps_;
  std::uint64_t nap_ns_ = UINT64_MAX;  ///< longest nap until the next look at running launches
  std::uint64_t last_active_ns_ = 0;
  std::uint64_t looked_at_opaque_ns_ = 0;
  std::uint64_t looked_for_fault_ns_ = 0;
  std::uint32_t time_slice_us_ = 0;  ///< the time slice last asked for, when groups_made_ groups had been made
  std::uint32_t groups_made_ = 0;
  bool tell_time_slice_ = false;  ///< a new stub page must be told of the time slice
  std::uint64_t reported_ns_ = 0;
  std::uint64_t last_reap_ns_ = 0;
  std::uint64_t latest_left_ = 0;   ///< HostSlot::left_ns, the latest of the running launches ...
  std::uint64_t left_seen_ns_ = 0;  ///< ... and when this thread saw it
  ClockOffset clocks_;
};

}  // namespace gpuslice
