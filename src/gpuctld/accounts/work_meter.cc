#include "gpuctld/accounts/work_meter.h"

#include <algorithm>

namespace gpuctl::daemon {

namespace {

double seconds(double ns) {
  return ns / 1e9;
}

/// How much a counter has grown: as often as can be in that time, whatever the page says.
std::uint64_t grown(std::uint64_t before, std::uint64_t now, std::uint64_t elapsed_ns) {
  constexpr std::uint64_t kLeastNs = 100, kAtOnce = 1000;
  return now <= before ? 0 : std::min(now - before, elapsed_ns / kLeastNs + kAtOnce);
}

}  // namespace

void WorkMeter::look(const Counted& counted, const Seen& seen, std::uint64_t now_ns) {
  if (looked_ns_ == 0) begun_ns_ = looked_ns_ = now_ns;
  const std::uint64_t elapsed_ns = std::max(now_ns, looked_ns_) - looked_ns_;
  looked_ns_ += elapsed_ns;
  used_.memory_byte_s += static_cast<double>(seen_.memory) * seconds(static_cast<double>(elapsed_ns));
  used_.launches += static_cast<std::int64_t>(grown(counted_.launches, counted.launches, elapsed_ns));
  used_.evictions += static_cast<std::int64_t>(grown(counted_.evictions, counted.evictions, elapsed_ns));
  used_.bursts += static_cast<std::int64_t>(grown(counted_.bursts, counted.bursts, elapsed_ns));
  if (seen_.works) {
    const Seen& then = seen.works ? seen : seen_;
    works_ns_ += elapsed_ns;
    waits_ns_ += then.waits ? elapsed_ns : 0;
    sm_ns_ += static_cast<double>(elapsed_ns) * then.sms;
  } else if (works_ns_ == 0) {
    sms_ = seen.sms;
  }
  if (counted.burst_ns > counted_.burst_ns || counted.bursts > counted_.bursts) {
    const std::uint64_t took = std::max(counted.burst_ns, counted_.burst_ns) - counted_.burst_ns;
    const std::uint64_t ahead = std::min(ahead_ns_, took);
    ahead_ns_ -= ahead;
    count_work(took - ahead);
  } else if (works_ns_ > static_cast<std::uint64_t>(kLong.count())) {
    settle(true);
  }
  counted_ = counted;
  seen_ = seen;
}

void WorkMeter::settle(bool in_burst) {
  if (!in_burst) return;
  ahead_ns_ += works_ns_;
  count_work(works_ns_);
}

/// No more than the time that has passed: a burst may have begun before the daemon did, and pages may lie.
void WorkMeter::count_work(std::uint64_t ns) {
  const double took = static_cast<double>(std::min(ns, looked_ns_ - begun_ns_ - charged_ns_));
  charged_ns_ += static_cast<std::uint64_t>(took);
  const double seen = static_cast<double>(works_ns_);
  if (works_ns_ > 0) sms_ = sm_ns_ / seen;
  used_.work_s += seconds(took);
  used_.sm_s += seconds(took) * sms_;
  sm_s_ += seconds(took) * sms_;
  if (works_ns_ > 0) used_.waited_s += seconds(took * static_cast<double>(waits_ns_) / seen);
  works_ns_ = waits_ns_ = 0;
  sm_ns_ = 0;
}

}  // namespace gpuctl::daemon
