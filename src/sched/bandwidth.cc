#include "sched/bandwidth.h"

#include <algorithm>
#include <utility>

namespace gpuctl::sched {

void Bandwidth::set(const Quota& quota, Nanoseconds now) {
  if (quota == quota_) return;
  quota_ = quota;
  now_ = now;
  period_ = now - now % quota.period;
  left_ = std::min(left_, Nanoseconds{}) + quota.time;
  if (throttled_ && left_.count() > 0) {
    seen_ = seen(now);
    throttled_ = false;
  }
}

/// True if a period has begun.
bool Bandwidth::refill(Nanoseconds now) {
  now_ = std::max(now_, now);
  const std::int64_t periods = (now_ - period_) / quota_.period;
  if (periods == 0) return false;
  period_ += periods * quota_.period;
  left_ = std::min(left_ + periods * quota_.time, quota_.time + quota_.burst);
  return true;
}

void Bandwidth::use(Nanoseconds time, Nanoseconds now) {
  const bool begun = refill(now);
  left_ = std::min(left_ - time, quota_.time + quota_.burst);
  due_ |= begun;
}

bool Bandwidth::step(Nanoseconds now) {
  const bool begun = std::exchange(due_, false) | refill(now);
  const bool was = throttled_;
  if (!throttled_ && left_.count() <= 0) {
    throttled_ = true;
    since_ = now_;
    ++seen_.times;
  } else if (throttled_ && begun && left_.count() > 0) {
    seen_ = seen(now_);
    throttled_ = false;
  }
  return throttled_ != was;
}

std::optional<Bandwidth::Nanoseconds> Bandwidth::next(double rate) const {
  if (throttled_) {
    const std::int64_t paid_after = std::max(-left_, Nanoseconds{}) / quota_.time + 1;
    return period_ + paid_after * quota_.period;
  }
  if (rate <= 0) return std::nullopt;
  // A period that begins before gives more.
  const double used_up = static_cast<double>(left_.count()) / rate;
  if (used_up >= static_cast<double>((period_ + quota_.period - now_).count())) return period_ + quota_.period;
  return now_ + Nanoseconds(static_cast<std::int64_t>(used_up) + 1);
}

Bandwidth::Seen Bandwidth::seen(Nanoseconds now) const {
  Seen seen = seen_;
  if (throttled_) seen.time += std::max(now, since_) - since_;
  return seen;
}

}  // namespace gpuctl::sched
