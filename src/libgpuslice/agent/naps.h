// When the agent looks again: it spins, naps or sleeps between two looks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libgpuslice/agent/nap_planner.h"
#include "libgpuslice/agent/stub_page.h"
#include "libgpuslice/launch/context_state.h"

namespace gpuslice {

/// For the agent alone.
class Naps {
 public:
  /// Both outlive this object.
  Naps(ContextState& context, const StubPage& page) : context_(context), page_(page) {}

  /// There was work at this time.
  void note_work(std::uint64_t now_ns) { last_work_ns_ = now_ns; }
  /// Whether there was work lately.
  bool work_lately(std::uint64_t now_ns) const;
  /// The next nap must not last longer than a launch whose end is awaited. With the book's mutex.
  void look_for_ends();
  /// The same of anything else; look_for_ends() forgets it.
  void not_longer_than(std::uint64_t ns) { longest_ns_ = std::min(longest_ns_, ns); }
  /// Sleeps until the daemon or the launch path has news, or until the next look. `wake_ups_seen`, `epoch_seen`: as
  /// they were before this look. `busy`: an eviction or more workers are awaited.
  void sleep(std::uint32_t wake_ups_seen, std::uint32_t epoch_seen, bool busy);

 private:
  ContextState& context_;
  const StubPage& page_;
  NapPlanner planner_;
  std::uint64_t longest_ns_ = UINT64_MAX;  ///< longest nap until the next look at running launches
  std::uint64_t busy_since_ns_ = 0;        ///< 0: it is not busy
  std::uint64_t last_work_ns_ = 0;
};

}  // namespace gpuslice
