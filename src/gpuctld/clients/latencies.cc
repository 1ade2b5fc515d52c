#include "gpuctld/clients/latencies.h"

#include <algorithm>
#include <utility>

#include "gpuctld/clock.h"
#include "ipc/stub_map.h"
#include "sched/slices.h"

namespace gpuctl::daemon {

namespace {

using Nanoseconds = std::chrono::nanoseconds;
constexpr Nanoseconds kLongest{kLongestLatency};

void put(std::vector<ipc::Latency>& out, const char* of, std::int64_t seconds,
         const sched::LatencyHistogram& histogram) {
  const auto us = [&](double share) {
    return std::chrono::duration<double, std::micro>(std::min(*histogram.percentile(share), kLongest)).count();
  };
  if (histogram.count() == 0) return;
  out.push_back({.of = of,
                 .seconds = seconds,
                 .count = static_cast<std::int64_t>(histogram.count()),
                 .p50_us = us(0.5),
                 .p99_us = us(0.99),
                 .p999_us = us(0.999)});
}

constexpr std::int64_t kWindowSeconds =
    std::chrono::duration_cast<std::chrono::seconds>(sched::LatencyWindow::kUsual).count();

}  // namespace

std::optional<ClientLatency::More> ClientLatency::look(const ipc::LatencyCounts& page, std::uint64_t now_ns) {
  looked_ns_ = now_ns;
  const std::uint32_t number = ipc::load(page.counted);
  if (number == (state_ ? state_->number : 0)) return std::nullopt;
  if (!state_) state_ = std::make_unique<State>();
  state_->number = number;
  if (state_->counted == Counted::bursts &&
      std::ranges::any_of(page.requests, [](const std::uint32_t& bucket) { return ipc::load(bucket) != 0; })) {
    *state_ = State{};
    state_->number = number;
    state_->counted = Counted::requests;
  }
  const auto& buckets = state_->counted == Counted::requests ? page.requests : page.bursts;
  const std::uint64_t before = state_->window.total().count();
  More more{.histogram = {},
            .counted = state_->counted,
            .warm = before >= kWarmUpBursts && now_ns >= state_->first_ns + kWarmUpNs};
  for (std::size_t i = 0; i < kLatencyBuckets; ++i) {
    const std::uint32_t now = ipc::load(buckets[i]);
    more.histogram.add_to_bucket(i, now - std::exchange(state_->seen[i], now));
  }
  state_->window.add(instant(now_ns), more.histogram);
  if (before == 0) state_->first_ns = now_ns;
  if (more.histogram.count() == 0) return std::nullopt;  // a burst of a program that names its requests
  return more;
}

std::vector<ipc::Latency> ClientLatency::describe() const {
  std::vector<ipc::Latency> result;
  if (!state_) return result;
  const char* of = state_->counted == Counted::requests ? "requests" : "bursts";
  put(result, of, kWindowSeconds, state_->window.lately(instant(looked_ns_)));
  put(result, of, 0, state_->window.total());
  return result;
}

void SliceLatencies::add(std::string_view slice, int device, const ClientLatency::More& more, std::uint64_t now_ns) {
  sched::for_each_up(slice, [&](std::string_view path) {
    Sum& sum = by_slice_[std::string(path)];
    (more.counted == Counted::requests ? sum.requests : sum.bursts) = true;
    sum.window.add(instant(now_ns), more.histogram);
    if (more.warm) sum.warm[device] += more.histogram;
  });
}

const sched::LatencyHistogram* SliceLatencies::warm(std::string_view slice, int device) const {
  const auto sum = by_slice_.find(slice);
  if (sum == by_slice_.end()) return nullptr;
  const auto warm = sum->second.warm.find(device);
  return warm == sum->second.warm.end() ? nullptr : &warm->second;
}

std::vector<ipc::Latency> SliceLatencies::describe(std::string_view slice, std::uint64_t now_ns) const {
  std::vector<ipc::Latency> result;
  const auto found = by_slice_.find(slice);
  if (found == by_slice_.end()) return result;
  const Sum& sum = found->second;
  const char* of = !sum.requests ? "bursts" : !sum.bursts ? "requests" : "bursts and requests";
  put(result, of, kWindowSeconds, sum.window.lately(instant(now_ns)));
  put(result, of, 0, sum.window.total());
  return result;
}

void SliceLatencies::add_up(std::string_view slice, ipc::SliceTotals& totals) const {
  constexpr std::size_t kSteps = std::size_t{1} << kLatencyStepBits;
  const auto found = by_slice_.find(slice);
  if (found == by_slice_.end()) return;
  const sched::LatencyHistogram all = found->second.window.total();
  for (std::size_t bucket = 0; bucket < kLatencyBuckets; ++bucket) {
    const auto count = static_cast<std::int64_t>(all.counts()[bucket]);
    if (count == 0) continue;
    const auto ns = static_cast<double>(std::min(latency_of_bucket(bucket), kLongestLatency));
    const double to_us = static_cast<double>(latency_bucket_begin((bucket / kSteps + 1) * kSteps)) / 1e3;
    totals.latency_seconds += static_cast<double>(count) * ns / 1e9;
    if (totals.latency.empty() || totals.latency.back().to_us < to_us) totals.latency.push_back({.to_us = to_us});
    totals.latency.back().count += count;
  }
}

void SliceLatencies::keep(const std::function<bool(const std::string& slice)>& exists) {
  std::erase_if(by_slice_, [&](const auto& entry) { return !exists(entry.first); });
}

}  // namespace gpuctl::daemon
