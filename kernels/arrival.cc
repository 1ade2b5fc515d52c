#include "arrival.h"

#include <cmath>

namespace gpuctl::bench {

Schedule::Schedule(Arrival arrival, double period_us, std::uint64_t seed, std::int64_t start_ns)
    : arrival_(arrival), period_ns_(period_us * 1000), random_(seed), start_ns_(start_ns), due_ns_(start_ns) {}

void Schedule::advance() {
  if (arrival_ == Arrival::kBackToBack) return;
  const double gaps = arrival_ == Arrival::kPeriodic ? 1.0 : -std::log(random_.next_positive());
  elapsed_ns_ += gaps * period_ns_;
  due_ns_ = start_ns_ + static_cast<std::int64_t>(elapsed_ns_);
}

}  // namespace gpuctl::bench
