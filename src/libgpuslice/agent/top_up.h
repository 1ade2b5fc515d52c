// Growing: adds workers to launches that may use more SMs than they have workers for.
#pragma once

#include <cstdint>
#include <vector>

#include "libgpuslice/agent/blocked_worker_streams.h"
#include "libgpuslice/agent/return_watch.h"
#include "libgpuslice/agent/worker_streams.h"
#include "libgpuslice/launch/context_state.h"

namespace gpuslice {

/// For the agent alone.
class TopUps {
 public:
  /// Both outlive this object.
  TopUps(ContextState& context, ReturnWatch& returns) : context_(context), returns_(returns) {}

  /// Makes the streams for workers in the current context. Returns false if the driver refuses.
  bool make_streams(int priority) { return streams_.make(priority); }

  struct Order {
    Launch* launch;  ///< stays valid without the mutex, since only the agent deletes launches
    std::uint32_t workers;
  };
  /// Looks at all launches that may be running, with the book's mutex.
  std::vector<Order> plan();
  /// Without the mutex: calls the driver.
  void send(const Order& order);
  /// The workers that are missing if nobody else may have SMs any more. With the book's mutex.
  std::vector<Order> plan_for_exit();

  /// Whether some launch needs workers soon, as of the last plan().
  bool wanted() const { return wanted_; }
  /// Tells the daemon that workers were added: a turn counts from when Usage::holding shows workers.
  void tell_if_sent();

  /// Whether none of the agent's grids runs, as it was found at the last look_for_grids(). `matters`: false takes it
  /// for granted that some do.
  void look_for_grids(bool matters) { none_runs_ = matters && streams_.all_idle(); }
  bool none_runs() const { return none_runs_; }

 private:
  void plan_for(Launch& head, std::uint32_t allowed, std::uint64_t now, std::vector<Order>& orders);

  ContextState& context_;
  ReturnWatch& returns_;
  WorkerStreams streams_;
  BlockedWorkerStreams blocked_;
  bool wanted_ = false;
  bool sent_ = false;  ///< workers were added, and the daemon was not told yet
  bool none_runs_ = false;
};

}  // namespace gpuslice
