// Charges a user for the daemon's time.
#pragma once

#include <chrono>
#include <cstdint>

#include "gpuctld/budgets/user_budgets.h"
#include "gpuctld/clock.h"

namespace gpuctl::daemon {

/// What is done while it lives is done for the user. The processor's time counts: a daemon that has to wait for a
/// processor has not worked for longer. Not one within another.
class Timed {
 public:
  Timed(UserBudgets& budgets, std::uint32_t uid) : Timed(budgets, uid, used() - kOfLoop.count()) {}
  /// `began`: used(), before it was known for whom.
  Timed(UserBudgets& budgets, std::uint32_t uid, std::uint64_t began) : budgets_(budgets), uid_(uid), began_(began) {}
  ~Timed() { budgets_.worked(uid_, std::chrono::nanoseconds(used() - began_), now_ns()); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  /// Of the processor, by this thread, in ns.
  static std::uint64_t used() { return now_ns(CLOCK_THREAD_CPUTIME_ID); }

  /// The loop's own work for each turn, which is not measured.
  static constexpr std::chrono::nanoseconds kOfLoop = std::chrono::microseconds(10);

 private:
  UserBudgets& budgets_;
  std::uint32_t uid_;
  std::uint64_t began_;
};

}  // namespace gpuctl::daemon
