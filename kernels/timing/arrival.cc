#include "kernels/timing/arrival.h"

namespace gpuctl::bench {

Schedule::Schedule(Arrival arrival, double period_us, std::uint32_t burst, std::uint64_t seed, std::int64_t start_ns)
    : arrival_(arrival),
      period_ns_(period_us * 1000),
      burst_(burst),
      random_(seed),
      start_ns_(start_ns),
      due_ns_(start_ns) {}

void Schedule::advance() {
  if (arrival_ == Arrival::kBackToBack || arrival_ == Arrival::kApart) return;
  if (arrival_ == Arrival::kBursts && ++of_burst_ < burst_) return;
  of_burst_ = 0;
  const double gaps = arrival_ == Arrival::kPoisson ? random_.exponential(1) : 1.0;
  elapsed_ns_ += gaps * period_ns_;
  due_ns_ = start_ns_ + static_cast<std::int64_t>(elapsed_ns_);
}

void Schedule::completed(std::int64_t at_ns) {
  if (arrival_ == Arrival::kApart) due_ns_ = at_ns + static_cast<std::int64_t>(period_ns_);
}

}  // namespace gpuctl::bench
