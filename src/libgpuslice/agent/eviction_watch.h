// Follows the grant, and notices when a shrink has taken effect on the GPU, for the daemon and the user. Workers read
// the grant themselves, so an eviction needs no agent; the agent only measures how long it took.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "libgpuslice/agent/launch_times.h"
#include "libgpuslice/agent/stub_page.h"
#include "libgpuslice/launch/context_state.h"

namespace gpuslice {

/// For the agent alone.
class EvictionWatch {
 public:
  /// All three outlive this object.
  EvictionWatch(ContextState& context, const StubPage& page, const LaunchTimes& times)
      : context_(context), page_(page), times_(times) {}

  /// The page is another one, with a grant of this epoch.
  void start_from(std::uint32_t epoch);
  /// Looks at all running launches, with the book's mutex.
  void look(std::uint32_t epoch_seen);
  /// Reads on which SMs workers are while an eviction is under way, by one round of small copies after another on
  /// `stream`.
  void look_for_remaining(CUstream stream);
  /// Whether the grant shrank, and workers may still be on SMs outside of it.
  bool evicting() const { return evicting_; }

 private:
  void follow_grant(std::uint32_t epoch_seen);
  void record(gpuctl::ipc::Usage& out, std::uint64_t took_ns) const;

  ContextState& context_;
  const StubPage& page_;
  const LaunchTimes& times_;
  std::uint32_t epoch_ = 0;
  std::uint32_t granted_ = gpuctl::ipc::kUnlimited;
  std::uint64_t decided_ns_ = 0;
  bool evicting_ = false;
  /// Workers on SMs that they must leave: not looked yet, copies under way, or none.
  enum class Remaining { kUnknown, kAsked, kNone } remaining_ = Remaining::kNone;
  struct Looked {
    std::uint32_t slot;
    std::uint32_t allowed;  ///< range of SMs
  };
  std::vector<Looked> looked_;      ///< the launches that are looked at
  std::uint64_t latest_left_ = 0;   ///< HostSlot::left_ns, the latest of the running launches ...
  std::uint64_t left_seen_ns_ = 0;  ///< ... and when this thread saw it
};

}  // namespace gpuslice
