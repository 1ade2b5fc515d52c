// The bandwidth of a slice on one GPU, as cgroup v2 has it for processors (cpu.max): in each period it may use the GPU
// for so long, and once that is used up it is throttled until the next one. What it leaves is kept for later, up to the
// burst. What it uses beyond the quota, as a kernel may go on, is a debt that the next periods pay. Pure; time is an
// argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/quota_text.h"

namespace gpuctl::sched {

class Bandwidth {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  /// Goes by `quota`, which is one (Quota::any()), from now on. If that is another one a period begins: debts stay, and
  /// what was left is gone.
  void set(const Quota& quota, Nanoseconds now);
  /// So much time of the whole GPU was used since the last call: as far as it was counted too often before, less than
  /// nothing.
  void use(Nanoseconds time, Nanoseconds now);
  /// Begins the periods that are due, and throttles or lets go. True if throttled() is not what it was.
  bool step(Nanoseconds now);

  bool throttled() const { return throttled_; }
  /// What may be used now; less than nothing: a debt.
  Nanoseconds left() const { return left_; }
  const Quota& quota() const { return quota_; }
  /// When step() has something to do, if it uses `rate` of the GPU from the latest call on: when a throttled one goes
  /// on, or when the other has used up what is left. None: not as long as it does what it does now.
  std::optional<Nanoseconds> next(double rate) const;

  struct Seen {
    std::int64_t times = 0;  ///< that it was throttled
    Nanoseconds time{};      ///< for how long together

    Seen& operator+=(const Seen& other) {
      times += other.times, time += other.time;
      return *this;
    }
  };
  Seen seen(Nanoseconds now) const;

 private:
  bool refill(Nanoseconds now);

  Quota quota_;
  Nanoseconds period_{};  ///< when the period began: periods begin at multiples of their length
  Nanoseconds now_{};     ///< at the latest call
  Nanoseconds left_{};
  bool due_ = false;  ///< a period has begun that step() has not seen
  bool throttled_ = false;
  Nanoseconds since_{};  ///< when it was throttled
  Seen seen_;            ///< up to since_
};

}  // namespace gpuctl::sched
