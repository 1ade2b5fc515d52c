#include "sched/pressure.h"

#include <cmath>

namespace gpuctl::sched {

namespace {

void go_on(Pressure::Kind& kind, bool waits, Pressure::Nanoseconds time) {
  using Seconds = std::chrono::duration<double>;
  for (std::size_t i = 0; i < kind.part.size(); ++i) {
    const double stays = std::exp(-Seconds(time) / Seconds(Pressure::kWindows[i]));
    kind.part[i] = kind.part[i] * stays + (waits ? 1 - stays : 0);
  }
  if (waits) kind.total += time;
}

}  // namespace

void Pressure::note(bool some, bool full, Nanoseconds now) {
  if (since_ && some == some_ && full == full_) return;
  seen_ = at(now);
  some_ = some;
  full_ = full;
  since_ = now;
}

Pressure::Seen Pressure::at(Nanoseconds now) const {
  Seen seen = seen_;
  if (!since_ || now <= *since_) return seen;
  go_on(seen.some, some_, now - *since_);
  go_on(seen.full, full_, now - *since_);
  return seen;
}

}  // namespace gpuctl::sched
