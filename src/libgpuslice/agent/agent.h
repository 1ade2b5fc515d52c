// The agent: one thread per managed context. It notices completed launches, reports usage to the daemon, adds workers
// to kernels that may have more, and keeps launch blocks ready. It decides nothing: grants come from the daemon.
//
// An eviction needs no agent, since workers read the grant themselves. The agent only measures how long it took. The
// agent puts all its work on the GPU into its own streams of the greatest priority, so that its workers do not wait
// behind the kernel that they are to continue. If the GPU has more than two levels of priority, the program's streams
// never have the greatest one (priority_band.h).
#pragma once

#include <cstdint>

#include "libgpuslice/agent/completions.h"
#include "libgpuslice/agent/eviction_watch.h"
#include "libgpuslice/agent/launch_times.h"
#include "libgpuslice/agent/naps.h"
#include "libgpuslice/agent/opaque_pace.h"
#include "libgpuslice/agent/return_watch.h"
#include "libgpuslice/agent/stub_page.h"
#include "libgpuslice/agent/time_slice_watch.h"
#include "libgpuslice/agent/top_up.h"
#include "libgpuslice/launch/context_state.h"

namespace gpuslice {

class Agent {
 public:
  /// Prepares streams in the current context, which must be that of `context`, and starts the thread. Returns false,
  /// with nothing started, if the driver lacks a needed function or the system gives no thread. `context` lives as long
  /// as the process.
  static bool start(ContextState& context);

 private:
  explicit Agent(ContextState& context) : context_(context) {}
  bool prepare();
  void run();
  void report_at_exit();
  bool serve();
  void look();
  void adopt_stub_page();
  void look_at_opaque(std::uint32_t epoch_seen);
  void look_for_fault();
  void keep_slots();
  void report_slow();
  void rest_at_exec();
  void finish_at_exit();
  bool all_left();

  ContextState& context_;
  StubPage page_{context_};
  LaunchTimes times_;
  ReturnWatch returns_{context_, page_};
  Completions completions_{context_, times_, returns_};
  EvictionWatch evictions_{context_, page_, times_};
  TopUps top_ups_{context_, returns_};
  TimeSliceWatch time_slice_{page_};
  OpaquePace opaque_pace_;
  Naps naps_{context_, page_};
  CUstream housekeeping_ = nullptr;  ///< for zeroing launch blocks, and for copies of them
  bool zeroing_ = false;             ///< such a zeroing is under way
  /// When it last did what it does not do at each look.
  struct Last {
    std::uint64_t fault_ns = 0, report_ns = 0;
  } last_;
};

}  // namespace gpuslice
