#include "sched/predictor/time_curve.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <iterator>

namespace gpuctl::sched {

namespace {
constexpr std::uint64_t kRecentTimes = 4;  // measurements that a point covers
constexpr std::size_t kMostPoints = 32;
constexpr double kLongestPredictedNs = 1e16;  // still fits Time when multiplied by 256, for fewer CapSM
/// A point is kept if, from the point before it, it brings at least this part of what scaling in proportion would. Less
/// is noise.
constexpr double kWorth = 0.1;
/// After this many launches with fewer CapSM the curve forgets that more were of no use. Kernels change with their
/// input, and only a launch with more CapSM can show it.
constexpr std::uint64_t kTryAgain = 256;

Time rounded(double ns) {
  return Time{std::max<std::int64_t>(std::llround(ns), 1)};
}
}  // namespace

double time_with(std::span<const CurvePoint> points, CapSM capsm) {
  const auto above = std::lower_bound(points.begin(), points.end(), capsm,
                                      [](const CurvePoint& point, CapSM n) { return point.capsm < n; });
  if (above == points.end()) return static_cast<double>(points.back().whole.count());
  const double n = capsm.count, high = above->capsm.count, speed = 1 / static_cast<double>(above->whole.count());
  if (above == points.begin()) return high / (n * speed);
  const CurvePoint& below = *(above - 1);
  const double low = below.capsm.count, slower = 1 / static_cast<double>(below.whole.count());
  return 1 / (slower + (speed - slower) * (n - low) / (high - low));
}

void TimeCurve::learn(CapSM capsm, double ns) {
  if (capsm.count == 0 || !(ns > 0 && ns <= kLongestPredictedNs)) return;
  Measured& point = measured_[capsm.count];
  point.last = ++count_;
  point.ns += (ns - point.ns) / static_cast<double>(std::min(++point.times, kRecentTimes));
  forget();
  refresh();
}

void TimeCurve::forget() {
  const auto old = [this](const auto& entry) { return count_ - entry.second.last >= kTryAgain; };
  while (measured_.size() > 1 && old(*measured_.rbegin())) measured_.erase(std::prev(measured_.end()));
  if (measured_.size() <= kMostPoints) return;
  measured_.erase(std::min_element(measured_.begin(), measured_.end(),
                                   [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
}

void TimeCurve::refresh() {
  filled_for_ = CapSM{};
  points_.clear();
  for (const auto& [capsm, measured] : measured_) {
    const CurvePoint point{CapSM{capsm}, rounded(measured.ns)};
    if (!points_.empty()) {
      const CurvePoint& before = points_.back();
      const double gain = static_cast<double>(before.whole.count()) / static_cast<double>(point.whole.count()) - 1;
      const double more = static_cast<double>(capsm) / before.capsm.count - 1;
      if (point.whole >= before.whole || gain < kWorth * more) continue;
    }
    points_.push_back(point);
  }
}

std::span<const CurvePoint> TimeCurve::filled(CapSM device) {
  if (filled_for_ == device) return filled_;
  filled_for_ = device;
  filled_.clear();
  if (measured_.size() < 2) return filled_;
  const CurvePoint& last = points_.back();
  const bool saturated = measured_.rbegin()->first > last.capsm.count;
  const std::uint32_t end = saturated ? std::min(last.capsm, device).count : device.count;
  for (std::uint32_t n = 1; n <= end; ++n) {
    const double beyond = n > last.capsm.count ? static_cast<double>(last.capsm.count) / n : 1;
    const CurvePoint point{CapSM{n}, rounded(time_with(points_, CapSM{n}) * beyond)};
    if (filled_.empty() || point.whole < filled_.back().whole) filled_.push_back(point);
  }
  return filled_;
}

boost::json::value TimeCurve::to_json() const {
  boost::json::array all;
  for (const auto& [capsm, point] : measured_)
    all.push_back(boost::json::array{capsm, point.ns, point.times, count_ - point.last});
  return all;
}

bool TimeCurve::from_json(const boost::json::value& state) {
  const boost::json::array* all = state.if_array();
  if (all == nullptr || all->size() > kMostPoints) return false;
  TimeCurve read;
  read.count_ = kTryAgain;
  for (const boost::json::value& item : *all) {
    const boost::json::array* fields = item.if_array();
    double number[4];
    if (fields == nullptr || fields->size() != std::size(number)) return false;
    for (std::size_t i = 0; i < std::size(number); ++i) {
      if (!(*fields)[i].is_number()) return false;
      number[i] = (*fields)[i].to_number<double>();
    }
    const auto [capsm, ns, times, ago] = number;
    const bool good = capsm >= 1 && capsm <= kUnlimitedCapSM.count && ns > 0 && ns <= kLongestPredictedNs &&
                      times >= 1 && times <= 1e18 && ago >= 0;
    if (!good) return false;
    const double since = std::min(ago, static_cast<double>(kTryAgain));
    read.measured_[static_cast<std::uint32_t>(capsm)] = {ns, static_cast<std::uint64_t>(times),
                                                         kTryAgain - static_cast<std::uint64_t>(since)};
  }
  read.refresh();
  *this = std::move(read);
  return true;
}

}  // namespace gpuctl::sched
