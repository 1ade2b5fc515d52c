// Takes complete launches out of the book, and counts them for the daemon.
#pragma once

#include <cstdint>

#include "libgpuslice/agent/launch_times.h"
#include "libgpuslice/agent/return_watch.h"
#include "libgpuslice/launch/context_state.h"

namespace gpuslice {

/// For the agent alone.
class Completions {
 public:
  /// All three outlive this object.
  Completions(ContextState& context, LaunchTimes& times, ReturnWatch& returns)
      : context_(context), times_(times), returns_(returns) {}

  void start(std::uint64_t now_ns) { last_look_ns_ = now_ns; }
  /// With the book's mutex. `none_runs`: none of the agent's grids runs. Returns whether launches were outstanding.
  bool look(bool none_runs, std::uint64_t now_ns);

 private:
  void count(const Launch& launch, std::uint64_t now_ns);

  ContextState& context_;
  LaunchTimes& times_;
  ReturnWatch& returns_;
  std::uint64_t last_look_ns_ = 0;
};

}  // namespace gpuslice
