// What the threads of the program that launch in a context share with the context's agent. Only Context and Agent use
// it.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "libgpuslice/client/client.h"
#include "libgpuslice/client/grant_view.h"
#include "libgpuslice/launch/agent_link.h"
#include "libgpuslice/launch/launch_book.h"
#include "libgpuslice/launch/opaque_work.h"
#include "libgpuslice/launch/stream_limits.h"
#include "libgpuslice/launch/usage_publisher.h"
#include "libgpuslice/streams/opaque.h"

namespace gpuslice {

struct ContextState {
  /// `sms`: SMs of the device. `owner` outlives this object.
  ContextState(CUcontext context, int device_index, std::uint32_t sms, Slots slots, Opaque::Owner& owner);

  /// Examines the driver's answer to any call in this context. An error that breaks the context ends all management
  /// there, and the agent tells the daemon.
  void note_result(CUresult result);
  /// From now on nothing is managed here. Any thread. The agent notices this and ends.
  void end();
  /// Launches keep their original form for a while, because the program's streams hold up all streams of the agent.
  void note_crowded();
  bool crowded() const;

  const CUcontext handle;
  GrantView view;  ///< what the daemon grants
  LaunchBook book;
  AgentLink agent;
  Opaque opaque;
  OpaqueWork opaque_work;
  StreamLimits limits{view, book};
  UsagePublisher usage{view, book, opaque_work};
  Targets targets;  ///< guarded by the book's mutex

 private:
  std::atomic<std::uint64_t> crowded_until_ns_{0};  ///< CLOCK_MONOTONIC
};

}  // namespace gpuslice
