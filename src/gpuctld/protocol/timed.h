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
  Timed(UserBudgets& budgets, std::uint32_t uid) : budgets_(budgets), uid_(uid), began_(used()) {}
  ~Timed() { budgets_.worked(uid_, std::chrono::nanoseconds(used() - began_), now_ns()); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  static std::uint64_t used() { return now_ns(CLOCK_THREAD_CPUTIME_ID); }

  UserBudgets& budgets_;
  std::uint32_t uid_;
  std::uint64_t began_;
};

}  // namespace gpuctl::daemon
