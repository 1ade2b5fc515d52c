// What the threads of the program and the agent of a context tell each other, beside the book: that the agent has to
// wake up, that something changed, that nobody is to touch the context, and that all is over.
#pragma once

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "libgpuslice/launch/agent_stuck.h"

namespace gpuslice {

/// Any thread, except where said. Takes no lock.
class AgentLink {
 public:
  /// The agent's state, for threads that wait for it. Once it is over, the agent calls the driver no more.
  enum class AgentIs { kAtWork, kHeld, kReturns, kOver };
  /// How long a thread of the program waits for an agent that is in a driver call, outside of process exit.
  static constexpr std::chrono::seconds kPatience{2};

  void wake();
  /// Wakes the agent if it may sleep for long.
  void wake_if_asleep() {
    if (asleep_.load(std::memory_order_acquire)) wake();
  }
  /// A policy for jobs is in force, and the first launch became outstanding again.
  void note_work_begins() { work_begins_.store(true, std::memory_order_relaxed); }
  /// Called after a launch was booked. Wakes the agent if it sleeps for long, or if it must see the end of this launch
  /// soon.
  void rouse() {
    if (work_begins_.exchange(false, std::memory_order_relaxed) || asleep_.load(std::memory_order_acquire)) wake();
  }

  /// Waits until the agent changes something, at most 1 ms. The caller holds the book's mutex, and checks its condition
  /// again.
  void wait_for_change(std::unique_lock<std::mutex>& lock);
  void notify_change() { changed_.notify_all(); }

  /// From now on nothing is managed in the context. Returns false if that was so before.
  bool set_ended() { return !ended_.exchange(true); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// The driver's error that broke the context; CUDA_SUCCESS: none did.
  void set_fault(CUresult fault) { fault_.store(fault); }
  CUresult fault() const { return fault_.load(); }

  /// Until release(), the agent neither calls the driver nor touches memory of the context. It begins to obey when it
  /// is kHeld.
  void hold();
  void release();
  /// Returns false if the agent does not reach that state, or its end, in time.
  bool wait_until_agent_is(AgentIs what, std::chrono::steady_clock::time_point until) const;
  /// The same, before the caller takes away what the agent looks at. While looks wait (look_gate.h) the agent may wait
  /// there too, and so would the caller in the driver: patience begins when they go on.
  bool wait_patiently_until_agent_is(AgentIs what, std::chrono::nanoseconds patience = kPatience) const;

  /// Whether the agent was inside the same driver call, with launches outstanding, at this look and at the one before.
  /// One thread.
  bool stuck_since_last_look(bool outstanding);

  // What follows is for the agent alone.

  std::uint32_t wake_ups() const { return wake_ups_.load(std::memory_order_acquire); }
  /// Sleeps until a wake-up beyond `wake_ups_seen`, until `*also` is not `also_seen` (null: nothing else counts), or
  /// until the time is over.
  void sleep(std::uint32_t wake_ups_seen, const std::uint32_t* also, std::uint32_t also_seen, std::uint64_t timeout_ns);
  /// Called before a long sleep, and before the agent looks for the last time whether there is work.
  void fall_asleep() { asleep_.store(true, std::memory_order_seq_cst); }
  void awake() { asleep_.store(false, std::memory_order_relaxed); }
  /// Whether threads of the program wait until launches complete.
  bool awaited() const { return waiting_.load(std::memory_order_relaxed) > 0; }
  /// Returns when nobody holds the agent, which is `then` from then on. Returns false once the context is no longer
  /// managed.
  bool wait_while_held(AgentIs then = AgentIs::kAtWork);
  /// The agent is as while it is held, as long as `on()`; wake() makes it ask again. Before it is at work it does
  /// `then()`.
  template <class While, class Then>
  void rest_while(While on, Then then) {
    agent_is_.store(AgentIs::kHeld);
    for (std::uint32_t seen = wake_ups(); !ended() && on(); seen = wake_ups()) sleep(seen, nullptr, 0, kHeldNs);
    if (!wait_while_held(AgentIs::kReturns)) return;
    then();
    agent_is_.store(AgentIs::kAtWork);
  }
  void set_over() { agent_is_.store(AgentIs::kOver); }
  DriverCalls& driver_calls() { return driver_calls_; }

 private:
  /// Longest sleep at a time while the agent is held. A wake-up ends it.
  static constexpr std::uint64_t kHeldNs = 250'000'000;

  std::atomic<std::uint32_t> wake_ups_{0};
  std::atomic<bool> asleep_{false};
  std::atomic<bool> work_begins_{false};
  std::condition_variable changed_;
  std::atomic<int> waiting_{0};
  std::atomic<bool> ended_{false};
  std::atomic<CUresult> fault_{CUDA_SUCCESS};
  std::atomic<int> holds_{0};
  std::atomic<AgentIs> agent_is_{AgentIs::kAtWork};
  DriverCalls driver_calls_;
  AgentLook last_look_;  ///< of stuck_since_last_look()
};

}  // namespace gpuslice
