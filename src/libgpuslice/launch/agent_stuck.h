// Tells whether the agent is stuck in a driver call, for a thread that looks at the agent from time to time.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpuslice {

/// Counts how often the agent entered or left code that calls the driver. The count is odd while the agent is inside.
/// Only the agent writes it.
class DriverCalls {
 public:
  /// While an object of this class lives, the agent may be in a driver call.
  class Inside {
   public:
    explicit Inside(DriverCalls& calls) : calls_(calls) { calls_.count_.fetch_add(1, std::memory_order_relaxed); }
    ~Inside() { calls_.count_.fetch_add(1, std::memory_order_relaxed); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    DriverCalls& calls_;
  };

  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_{0};
};

/// What one look at an agent shows.
struct AgentLook {
  std::uint64_t calls = 0;   ///< DriverCalls::count()
  bool outstanding = false;  ///< whether launches are outstanding
};

/// True if launches were outstanding at both looks and the agent was inside the same driver call at both. An agent that
/// merely did not get a processor is hardly ever inside a driver call.
constexpr bool is_stuck(const AgentLook& before, const AgentLook& now) {
  return before.outstanding && now.outstanding && now.calls % 2 == 1 && before.calls == now.calls;
}

}  // namespace gpuslice
