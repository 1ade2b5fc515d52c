// Whether the agent is stuck in a driver call, as a thread that looks at it now and then can tell.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpuslice {

/// How often the agent has entered or left what calls the driver: odd while it is inside. Only the agent writes.
class DriverCalls {
 public:
  /// While it lives the agent may be in a driver call.
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

/// What is seen of an agent at a look.
struct AgentLook {
  std::uint64_t calls = 0;   ///< DriverCalls::count()
  bool outstanding = false;  ///< launches are
};

/// With launches outstanding at both looks, and inside the same driver call. An agent that merely did not get a
/// processor is hardly ever inside one.
constexpr bool is_stuck(const AgentLook& before, const AgentLook& now) {
  return before.outstanding && now.outstanding && now.calls % 2 == 1 && before.calls == now.calls;
}

}  // namespace gpuslice
