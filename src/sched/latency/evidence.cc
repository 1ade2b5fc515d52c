#include "sched/latency/evidence.h"

#include <cmath>
#include <utility>

namespace gpuctl::sched {

namespace {

/// That of events of which `mean` are expected at most `most` come.
double at_most(std::uint64_t most, double mean) {
  double term = std::exp(-mean), sum = term;
  for (std::uint64_t k = 1; k <= most; ++k) sum += term *= mean / static_cast<double>(k);
  return sum;
}

constexpr double kMayBeLonger = 0.01;
constexpr std::uint64_t kMostCounted = 4000;  // beyond this the first term is nearly 0

}  // namespace

double longer_than(const LatencyHistogram& bursts, std::chrono::nanoseconds target) {
  const auto at_most = static_cast<std::uint64_t>(target.count());
  std::size_t bucket = kLatencyBuckets;
  double longer = 0;
  while (bucket > 0 && latency_bucket_begin(bucket - 1) >= at_most)
    longer += static_cast<double>(bursts.counts()[--bucket]);
  if (bucket == 0) return longer;
  const auto [begin, end] = std::pair(latency_bucket_begin(bucket - 1), latency_bucket_begin(bucket));
  if (end <= at_most) return longer;  // beyond the last bucket
  return longer + static_cast<double>(bursts.counts()[bucket - 1]) * static_cast<double>(end - at_most) /
                      static_cast<double>(end - begin);
}

Verdict verdict_of(std::uint64_t count, double longer, double missed_by_chance) {
  if (count > kMostCounted) {
    longer *= static_cast<double>(kMostCounted) / static_cast<double>(count);
    count = kMostCounted;
  }
  const double mean = kMayBeLonger * static_cast<double>(count);
  const auto whole = static_cast<std::uint64_t>(std::llround(longer));
  if (whole > 0 && static_cast<double>(whole) > mean && 1 - at_most(whole - 1, mean) <= missed_by_chance)
    return Verdict::missed;
  if (count >= kTellsMet && at_most(whole, mean) <= kMetByChance) return Verdict::met;
  return Verdict::unknown;
}

void Evidence::add(const LatencyHistogram& bursts, bool late, std::chrono::nanoseconds now) {
  if (began_.count() < 0) first_ = began_ = now;
  latest_ = now;
  now_ += bursts;
  sum_ += bursts;
  late_now_ += late;
  if (now_.count() < stretch_ || now - began_ < kLeastStretch) return;
  before_ = std::exchange(now_, {});
  late_before_ = std::exchange(late_now_, 0);
  sum_ = before_;
  began_ = now;
}

Verdict Evidence::verdict(std::chrono::nanoseconds target, double missed_by_chance) const {
  std::uint64_t count = sum_.count();
  double longer = longer_than(sum_, target);
  if (const std::uint64_t most = 2 * stretch_; count > most) {
    longer *= static_cast<double>(most) / static_cast<double>(count);
    count = most;
  }
  const Verdict found = verdict_of(count, longer, missed_by_chance);
  if (found == Verdict::missed && late_before_ + late_now_ < kLateLooks) return Verdict::unknown;
  if (found == Verdict::met && !has_lasted()) return Verdict::unknown;
  return found;
}

}  // namespace gpuctl::sched
